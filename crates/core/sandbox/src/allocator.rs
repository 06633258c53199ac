//! Tunes the memory allocator of this process. Only glibc has, and needs, these settings.

/// Makes all threads share two heaps instead of one heap per thread.
///
/// Every heap retains its freed memory, which is up to a tenth of all memory in a long
/// conversation, and haft's threads rarely allocate at the same moment. Large blocks, such as the
/// body of a request, are mapped outside the heaps and returned to the system when they are freed;
/// by default glibc raises that size threshold after the first large block is freed.
///
/// Call it in `main`, before a second thread is started.
pub fn limit_malloc_arenas() {
    #[cfg(target_env = "gnu")]
    #[expect(unsafe_code, reason = "neither the standard library nor rustix has it")]
    // SAFETY: these calls set numbers of the allocator, which takes its own lock.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 2);
        libc::mallopt(libc::M_MMAP_THRESHOLD, 256 * 1024);
    }
}

/// Returns freed memory to the system. Call it after work that needed much memory for a short time,
/// such as opening a conversation: by default the allocator returns only the memory at the end of a
/// heap.
pub fn release_free_memory() {
    #[cfg(target_env = "gnu")]
    #[expect(unsafe_code, reason = "neither the standard library nor rustix has it")]
    // SAFETY: this touches only pages without allocations, under the allocator's own locks.
    unsafe {
        libc::malloc_trim(0);
    }
}
