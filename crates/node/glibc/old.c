/* Functions that glibc 2.28 lacks or declares in another way, for programs that are linked with a newer glibc; see old.S. */
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define HIDDEN __attribute__((visibility("hidden")))

/* Added in 2.30. */
HIDDEN pid_t gettid(void) { return (pid_t)syscall(SYS_gettid); }

/* Functions since 2.33; before, the headers translated them to calls of `__xstat` and others. On 64-bit Linux `struct stat` and
 * `struct stat64` are the same. */
enum { STAT_VERSION = 1 };
extern int __xstat(int, const char *, void *);
extern int __lxstat(int, const char *, void *);
extern int __fxstat(int, int, void *);
extern int __fxstatat(int, int, const char *, void *, int);
HIDDEN int stat(const char *path, void *to) { return __xstat(STAT_VERSION, path, to); }
HIDDEN int stat64(const char *path, void *to) { return __xstat(STAT_VERSION, path, to); }
HIDDEN int lstat(const char *path, void *to) { return __lxstat(STAT_VERSION, path, to); }
HIDDEN int lstat64(const char *path, void *to) { return __lxstat(STAT_VERSION, path, to); }
HIDDEN int fstat(int file, void *to) { return __fxstat(STAT_VERSION, file, to); }
HIDDEN int fstat64(int file, void *to) { return __fxstat(STAT_VERSION, file, to); }
HIDDEN int fstatat(int folder, const char *path, void *to, int flags) {
    return __fxstatat(STAT_VERSION, folder, path, to, flags);
}
HIDDEN int fstatat64(int folder, const char *path, void *to, int flags) {
    return __fxstatat(STAT_VERSION, folder, path, to, flags);
}

/* Start of a program. Programs linked with 2.34 or later rely on the library to run their constructors. Older libraries call the function
 * passed as `init`, and so do newer ones in this version of the symbol: it runs the constructors. */
typedef void (*constructor)(int, char **, char **);
extern constructor __init_array_start[] __attribute__((weak, visibility("hidden")));
extern constructor __init_array_end[] __attribute__((weak, visibility("hidden")));
extern void _init(void) __attribute__((weak, visibility("hidden")));

static void construct(int argc, char **argv, char **environment) {
    if (_init != NULL) {
        _init();
    }
    for (constructor *each = __init_array_start; each < __init_array_end; each++) {
        (*each)(argc, argv, environment);
    }
}

typedef int (*entry)(int, char **, char **);
extern int old_start(entry, int, char **, constructor, void (*)(void), void (*)(void), void *);
__asm__(".symver old_start, __libc_start_main@GLIBC_2.2.5");

HIDDEN int __libc_start_main(entry main, int argc, char **argv, constructor init, void (*fini)(void),
                             void (*rtld_fini)(void), void *stack_end) {
    (void)init;
    (void)fini;
    return old_start(main, argc, argv, construct, NULL, rtld_fini, stack_end);
}
