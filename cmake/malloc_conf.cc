// How jemalloc is set up in the programs that search.
//
// Each prediction has a thread of its own. Of several arenas, one that no thread uses any more gives
// its pages back at once, and the next prediction asks for them again: a tenth of the time of a
// search.
extern "C" {
const char* malloc_conf = "narenas:1";
}
