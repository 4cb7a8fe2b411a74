// Memory of objects that are small and do not live long, of which a search makes tens of millions:
// nodes of graphs and trees, short strings and vectors. Asked for and given back by the general
// allocator they took a third of a search's time.
//
// Blocks of one size, a multiple of 16 bytes, come from pages of that size, so that the address of
// a block says how large it is and nothing is stored beside it. Every thread keeps two lists of
// free blocks per size, of at most kBatch blocks each; a full list goes to the other threads and an
// empty one comes from them as a whole (the magazines of Bonwick and Adams, USENIX'01). Pages are
// never given back: a search's peak is near its end.
//
// Addresses are reserved, not memory: where that is refused (ulimit -v) and for what is larger,
// malloc serves.
#ifndef ISOMER_PCG_SUPPORT_SMALL_BLOCKS_H_
#define ISOMER_PCG_SUPPORT_SMALL_BLOCKS_H_

#include <cstddef>

namespace isomer {

inline constexpr size_t kLargestSmallBlock = 1024;

// At least `bytes`, aligned to 16; null if there is no memory. Thread-safe, but not after fork() of
// a process with several threads.
void* AllocateBlock(size_t bytes);
// REQUIRES: null, or what AllocateBlock or malloc returned, on any thread.
void ReleaseBlock(void* block);

}  // namespace isomer

#endif  // ISOMER_PCG_SUPPORT_SMALL_BLOCKS_H_
