/* For programs with NVIDIA's runtime in them: functions that glibc 2.34 moved into libc.so.6 under a new version, bound to the old
   one. Not for programs that link to a library which uses these functions: the linker would keep them all. */
/* A function of this name in the program, which jumps to the old version of the C library's. */
        .macro OLD name, version=GLIBC_2.2.5
        .symver old_\name, \name@\version
        .globl  \name
        .hidden \name
        .type   \name, @function
\name:  jmpq    *old_\name@GOTPCREL(%rip)
        .size   \name, .-\name
        .endm

/* Only what is in use becomes part of a program: each stands in a section of its own. */
        .irp name, dlsym, dlvsym, dlopen, dlclose, dlerror, pthread_create, pthread_join, pthread_detach, \
             pthread_once, pthread_kill, pthread_cancel, pthread_sigmask, __pthread_key_create, pthread_key_create, \
             pthread_key_delete, pthread_getspecific, pthread_setspecific, pthread_mutex_trylock, \
             pthread_mutexattr_init, pthread_mutexattr_settype, pthread_mutexattr_setpshared, \
             pthread_mutexattr_destroy, pthread_condattr_setpshared, pthread_attr_setstacksize, pthread_rwlock_init, \
             pthread_rwlock_destroy, pthread_rwlock_rdlock, pthread_rwlock_wrlock, pthread_rwlock_tryrdlock, \
             pthread_rwlock_trywrlock, pthread_rwlock_timedrdlock, pthread_rwlock_timedwrlock, pthread_rwlock_unlock, \
             pthread_rwlockattr_init, pthread_rwlockattr_destroy, pthread_rwlockattr_setpshared, pthread_spin_init, \
             pthread_spin_destroy, pthread_spin_lock, pthread_spin_trylock, pthread_spin_unlock, sem_init, \
             sem_destroy, sem_wait, sem_trywait, sem_timedwait, sem_post, shm_open, shm_unlink
        .section .text.old.\name, "ax", @progbits
        OLD     \name
        .endr
        .section .text.old.dlmopen, "ax", @progbits
        OLD     dlmopen, GLIBC_2.3.4

/* What libstdc++ and libgcc of newer systems ask for. Nothing here throws: no unwind tables are found. */
        .section .text.old._dl_find_object, "ax", @progbits
        .globl  _dl_find_object
        .hidden _dl_find_object
_dl_find_object:
        movl    $-1, %eax
        ret
        .section .data.old.__libc_single_threaded, "aw", @progbits
        .globl  __libc_single_threaded
        .hidden __libc_single_threaded
__libc_single_threaded:
        .byte   0
        .section .note.GNU-stack, "", @progbits
