/* Names of the C library in the versions that glibc 2.28 has, for programs that are linked on a newer one.
 *
 * The linker binds every name to the newest version that the library has where it links; what runs must have that version too. Each name
 * here is one of this program's own instead, hidden from others, and goes on to the version that has been there from the beginning.
 * The behaviour is the same: the newer versions set errno less, or moved from libpthread and libdl into libc.
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

    /* libm: 2.29, 2.35 */
    old exp
    old exp2
    old log
    old log2
    old pow
    old hypot
    old hypotf
    /* libdl: 2.34 */
    old dlclose
    old dlerror
    old dlopen
    old dlsym
    /* libpthread: 2.32, 2.34 */
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

    /* Of 2.29; Rust's library looks whether it is there, and does without where it is not. */
    .globl posix_spawn_file_actions_addchdir_np
    .hidden posix_spawn_file_actions_addchdir_np
    .set posix_spawn_file_actions_addchdir_np, 0

    .section .note.GNU-stack, "", @progbits
