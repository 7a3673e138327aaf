/* Counts the bytes that a process allocates, for device_mem_util on CPU settings.
 *
 * Preloaded into a worker (LD_PRELOAD). Adds the size of every block of 4 KiB or more to a 64-bit
 * counter in a shared page, so that the sampler reads it without a system call and nothing runs in
 * the worker. Smaller blocks are book-keeping, not tensors. The page is the file that
 * DRIPLE_ALLOC_COUNTER names; without it nothing is counted.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define SMALLEST_COUNTED 4096
#define PAGE 4096

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static uint64_t nowhere;
static uint64_t *allocated_bytes = &nowhere;

static void *counted(void *block) {
    if (block) {
        size_t size = malloc_usable_size(block);
        if (size >= SMALLEST_COUNTED)
            __atomic_add_fetch(allocated_bytes, size, __ATOMIC_RELAXED);
    }
    return block;
}

__attribute__((constructor)) static void map_counter(void) {
    const char *path = getenv("DRIPLE_ALLOC_COUNTER");
    int file = path ? open(path, O_RDWR) : -1;
    if (file < 0)
        return;
    void *page = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (page != MAP_FAILED)
        allocated_bytes = page;
}

void *malloc(size_t size) { return counted(__libc_malloc(size)); }
void *calloc(size_t count, size_t size) { return counted(__libc_calloc(count, size)); }
void *realloc(void *block, size_t size) { return counted(__libc_realloc(block, size)); }
void *memalign(size_t align, size_t size) { return counted(__libc_memalign(align, size)); }
void *aligned_alloc(size_t align, size_t size) { return memalign(align, size); }

int posix_memalign(void **block, size_t align, size_t size) {
    void *made = memalign(align, size);
    if (!made)
        return ENOMEM;
    *block = made;
    return 0;
}
