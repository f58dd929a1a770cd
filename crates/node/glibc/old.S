/* Symbols of the C library in versions that glibc 2.28 has, for programs that are linked with a newer glibc.
 *
 * The linker binds each symbol to its newest version in the glibc of the build host, and the program then needs a glibc with that
 * version. Each function here is a hidden symbol of the program that jumps to the oldest version instead. The functions behave alike:
 * the newer versions only differ in when they set errno, or moved from libpthread and libdl into libc.
 */
    .text

.macro old name, version=GLIBC_2.2.5
    .symver corridor_old_\name, \name@\version
    .globl \name
    .hidden \name
    .type \name, @function
\name:
    jmp *corridor_old_\name@GOTPCREL(%rip)
    .size \name, . - \name
.endm

    /* libm: newer versions since 2.29 and 2.35 */
    old exp
    old exp2
    old log
    old log2
    old pow
    old hypot
    old hypotf
    /* libdl: newer versions since 2.34 */
    old dlclose
    old dlerror
    old dlopen
    old dlsym
    /* libpthread: newer versions since 2.32 and 2.34 */
    old pthread_getattr_np
    old pthread_attr_getguardsize
    old pthread_attr_getstack
    old pthread_attr_setstacksize
    old pthread_barrier_destroy
    old pthread_barrier_init
    old pthread_barrier_wait
    old pthread_condattr_setclock, GLIBC_2.3.3
    old pthread_create
    old pthread_detach
    old pthread_getspecific
    old pthread_join
    old pthread_key_create
    old pthread_key_delete
    old pthread_mutexattr_destroy
    old pthread_mutexattr_init
    old pthread_mutexattr_settype
    old pthread_mutex_trylock
    old pthread_once
    old pthread_rwlock_destroy
    old pthread_rwlock_init
    old pthread_rwlock_rdlock
    old pthread_rwlock_tryrdlock
    old pthread_rwlock_trywrlock
    old pthread_rwlock_unlock
    old pthread_rwlock_wrlock
    old pthread_setname_np, GLIBC_2.12
    old pthread_setspecific
    old pthread_kill
    old pthread_sigmask
    old sem_destroy
    old sem_init
    old sem_post
    old sem_wait

    /* Added in 2.29. Rust's standard library uses it only if its address is not zero. */
    .globl posix_spawn_file_actions_addchdir_np
    .hidden posix_spawn_file_actions_addchdir_np
    .set posix_spawn_file_actions_addchdir_np, 0

    .section .note.GNU-stack, "", @progbits
