// How jemalloc is set up in the programs that search.
//
// Each prediction has a thread of its own. Of several arenas, one that no thread uses any more gives
// its pages back at once, and the next prediction asks for them again: a tenth of the time of a
// search. What is free is kept for what comes next.
extern "C" {
const char* malloc_conf = "narenas:1,dirty_decay_ms:-1,muzzy_decay_ms:-1";
}
