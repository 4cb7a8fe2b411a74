// What kernels that are generated from declarations (generated_kernel.h) are written in: elements
// of all data types, an index that every thread gets, sums by several threads. Compiled by NVRTC
// for a GPU, and by a C++ compiler for tests on the host, where threads come one after the other,
// the last one first. Includes nothing: NVRTC has no standard library.
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define ISOMER_DEVICE __device__ __forceinline__
#define ISOMER_KERNEL(name, ...) \
  extern "C" __global__ void __launch_bounds__(256) name(const __VA_ARGS__ a)
#elif defined(ISOMER_EMULATES_BLOCKS)
// Kernels as a GPU runs them, but that blocks come one after the other, and their threads are the
// host's: for tests of what threads of a block do together.
#include <barrier>
#include <cmath>
#include <mutex>
#include <thread>
#include <vector>
#define ISOMER_DEVICE inline
#define __shared__ static
struct Dimension {
  unsigned x;
};
inline thread_local Dimension threadIdx, blockIdx;
inline constexpr Dimension gridDim = {2}, blockDim = {256};
inline std::barrier<>* block_barrier;
inline std::mutex block_mutex;
inline void __syncthreads() { block_barrier->arrive_and_wait(); }
template <typename Function>
void RunBlocks(Function run) {
  std::barrier barrier(blockDim.x);
  block_barrier = &barrier;
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < blockDim.x; ++thread) {
    threads.emplace_back([&run, thread] {
      threadIdx.x = thread;
      for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x) {
        run();
        __syncthreads();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}
#define ISOMER_KERNEL(name, ...)               \
  void name##_of_thread(const __VA_ARGS__& a); \
  extern "C" void name(const __VA_ARGS__& a) { \
    RunBlocks([&] { name##_of_thread(a); });   \
  }                                            \
  void name##_of_thread(const __VA_ARGS__& a)
#else
// Of the C library; declared here, because that is compiled in no time.
extern "C" {
float floorf(float);
double floor(double);
float rintf(float);
double rint(double);
double pow(double, double);
float powf(float, float);
float expf(float);
float logf(float);
float sqrtf(float);
float tanhf(float);
float erff(float);
float sinf(float);
float cosf(float);
float atanf(float);
}
#define ISOMER_DEVICE inline
// Beside each kernel, how many bytes its parameters have.
#define ISOMER_KERNEL(name, ...)                               \
  extern "C" const unsigned long long name##_bytes;            \
  const unsigned long long name##_bytes = sizeof(__VA_ARGS__); \
  extern "C" void name(const __VA_ARGS__& a)
#endif

#if defined(__CUDACC__) || defined(__CUDACC_RTC__) || defined(ISOMER_EMULATES_BLOCKS)
#define ISOMER_HAS_BLOCKS
#define ISOMER_FOR_EACH(Index, i, count)                                                 \
  for (Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; i < (count); \
       i += static_cast<Index>(gridDim.x) * blockDim.x)
// The same, where several threads of a block, its lanes, work for each element: Combine. Of lanes
// that are left over none stores.
#define ISOMER_FOR_EACH_BY_LANES(Index, i, count, elements)                                        \
  for (Index base = static_cast<Index>(blockIdx.x) * (elements), i = 0, stores = 0;                \
       base < (count) &&                                                                           \
       ((i = base + threadIdx.x % (elements)), (stores = threadIdx.x < (elements) && i < (count)), \
        (i = i < (count) ? i : (count)-1), true);                                                  \
       base += static_cast<Index>(gridDim.x) * (elements))
// A block for each row, one statement after the other: of elements [begin, end).
#define ISOMER_FOR_EACH_ROW(Index, row, count) \
  for (Index row = blockIdx.x; row < (count); row += gridDim.x)
#define ISOMER_IN_ROW(Index, i, begin, end) \
  for (Index i = (begin) + threadIdx.x; i < (end); i += blockDim.x)
#define ISOMER_IN_ROW_BY_LANES(Index, i, begin, end, elements)                                   \
  for (Index base = (begin), i = 0, stores = 0;                                                  \
       base < (end) &&                                                                           \
       ((i = base + threadIdx.x % (elements)), (stores = threadIdx.x < (elements) && i < (end)), \
        (i = i < (end) ? i : (end)-1), true);                                                    \
       base += (elements))
#define ISOMER_AFTER_STATEMENT __syncthreads()
#else
#define ISOMER_FOR_EACH(Index, i, count) for (Index i = (count); i-- > 0;)
#define ISOMER_FOR_EACH_BY_LANES(Index, i, count, elements) \
  for (Index stores = 1, i = (count); i-- > 0;)
#define ISOMER_FOR_EACH_ROW(Index, row, count) for (Index row = (count); row-- > 0;)
#define ISOMER_IN_ROW(Index, i, begin, end) for (Index i = (end); i-- > (begin);)
#define ISOMER_IN_ROW_BY_LANES(Index, i, begin, end, elements) \
  for (Index stores = 1, i = (end); i-- > (begin);)
#define ISOMER_AFTER_STATEMENT
#endif

namespace {

// Of a generated kernel.
template <int kReads, int kWrites>
struct Arguments {
  const void* reads[kReads];
  void* writes[kWrites];
  char* workspace;
  long long* error;  // ReportIndex
  long long kernel;  // its number, for errors
};

// Elements in memory.
struct bf16 {
  unsigned short bits;
};
struct f16 {
  unsigned short bits;
};
struct bool8 {
  unsigned char value;
};

ISOMER_DEVICE float FloatOfBits(unsigned bits) {
#ifdef __CUDA_ARCH__
  return __uint_as_float(bits);
#else
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
#endif
}
ISOMER_DEVICE unsigned BitsOfFloat(float value) {
#ifdef __CUDA_ARCH__
  return __float_as_uint(value);
#else
  unsigned bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
#endif
}

ISOMER_DEVICE float Load(const float* x, long long i) { return x[i]; }
ISOMER_DEVICE double Load(const double* x, long long i) { return x[i]; }
ISOMER_DEVICE float Load(const bf16* x, long long i) {
  return FloatOfBits(static_cast<unsigned>(x[i].bits) << 16);
}
ISOMER_DEVICE float Load(const f16* x, long long i) {
#ifdef __CUDA_ARCH__
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(x[i].bits));
  return value;
#else
  const unsigned sign = static_cast<unsigned>(x[i].bits & 0x8000) << 16;
  const unsigned magnitude = static_cast<unsigned>(x[i].bits & 0x7fff) << 13;
  if (magnitude >= 0x0f800000) return FloatOfBits(sign | magnitude | 0x7f800000);
  // 2^112 moves the exponent to float's bias, and makes subnormals normal.
  return FloatOfBits(sign |
                     BitsOfFloat(FloatOfBits(magnitude) * 5192296858534827628530496329220096.0f));
#endif
}
ISOMER_DEVICE long long Load(const long long* x, long long i) { return x[i]; }
ISOMER_DEVICE long long Load(const int* x, long long i) { return x[i]; }
ISOMER_DEVICE long long Load(const bool8* x, long long i) { return x[i].value != 0; }

ISOMER_DEVICE void Store(float* y, long long i, float value) { y[i] = value; }
// To nearest, ties to even. A NaN stays one.
ISOMER_DEVICE void Store(bf16* y, long long i, float value) {
  const unsigned word = BitsOfFloat(value);
  y[i].bits = static_cast<unsigned short>(
      value != value ? (word >> 16) | 0x40 : (word + 0x7fff + ((word >> 16) & 1)) >> 16);
}
ISOMER_DEVICE void Store(f16* y, long long i, float value) {
#ifdef __CUDA_ARCH__
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y[i].bits) : "f"(value));
#else
  const unsigned word = BitsOfFloat(value), magnitude = word & 0x7fffffff;
  unsigned bits;
  if (magnitude > 0x7f800000) {
    bits = 0x7e00;
  } else if (magnitude >= 0x477ff000) {
    bits = 0x7c00;
  } else if (magnitude < 0x38800000) {  // Below 2^-14: a multiple of 2^-24, as 0.5 + it shows.
    bits = BitsOfFloat(FloatOfBits(magnitude) + 0.5f) - 0x3f000000;
  } else {
    bits = (magnitude + 0xfff + ((magnitude >> 13) & 1) - 0x38000000) >> 13;
  }
  y[i].bits = static_cast<unsigned short>((word >> 16 & 0x8000) | bits);
#endif
}
// Towards zero, and no further than the type reaches.
template <typename Integer>
ISOMER_DEVICE Integer ToInteger(double value, Integer least, Integer most) {
  if (value != value) return 0;
  return value <= static_cast<double>(least)  ? least
         : value >= static_cast<double>(most) ? most
                                              : static_cast<Integer>(value);
}
constexpr int kMostInt = 0x7fffffff;
constexpr long long kMostLong = 0x7fffffffffffffffLL;
ISOMER_DEVICE void Store(int* y, long long i, double value) {
  y[i] = ToInteger<int>(value, -kMostInt - 1, kMostInt);
}
ISOMER_DEVICE void Store(long long* y, long long i, double value) {
  y[i] = ToInteger<long long>(value, -kMostLong - 1, kMostLong);
}
ISOMER_DEVICE void Store(bool8* y, long long i, double value) { y[i].value = value != 0; }
ISOMER_DEVICE void Store(int* y, long long i, float value) {
  Store(y, i, static_cast<double>(value));
}
ISOMER_DEVICE void Store(long long* y, long long i, float value) {
  Store(y, i, static_cast<double>(value));
}
ISOMER_DEVICE void Store(bool8* y, long long i, float value) { y[i].value = value != 0; }
ISOMER_DEVICE void Store(int* y, long long i, long long value) {
  y[i] = value < -kMostInt - 1LL ? -kMostInt - 1
         : value > kMostInt      ? kMostInt
                                 : static_cast<int>(value);
}
ISOMER_DEVICE void Store(long long* y, long long i, long long value) { y[i] = value; }
ISOMER_DEVICE void Store(bool8* y, long long i, long long value) { y[i].value = value != 0; }

// So that what is rounded again to fewer digits is what it would be at once: to odd.
ISOMER_DEVICE float ToOdd(double value) {
  const float nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || value != value) return nearest;
  unsigned bits = BitsOfFloat(nearest);
  const double size = nearest < 0 ? -static_cast<double>(nearest) : static_cast<double>(nearest);
  if (size > (value < 0 ? -value : value)) --bits;
  return FloatOfBits(bits | 1);
}
ISOMER_DEVICE void Store(float* y, long long i, double value) { y[i] = static_cast<float>(value); }
ISOMER_DEVICE void Store(double* y, long long i, double value) { y[i] = value; }
ISOMER_DEVICE void Store(bf16* y, long long i, double value) { Store(y, i, ToOdd(value)); }
ISOMER_DEVICE void Store(f16* y, long long i, double value) { Store(y, i, ToOdd(value)); }
ISOMER_DEVICE void Store(float* y, long long i, long long value) {
  y[i] = static_cast<float>(value);
}
ISOMER_DEVICE void Store(bf16* y, long long i, long long value) {
  Store(y, i, ToOdd(static_cast<double>(value)));
}
ISOMER_DEVICE void Store(f16* y, long long i, long long value) {
  Store(y, i, ToOdd(static_cast<double>(value)));
}

// The scalar functions of declarations (pcg/evaluation/number.h), over long long, float and double.
template <typename T>
ISOMER_DEVICE T Maximum(T a, T b) {
  return a > b || a != a ? a : b;
}
ISOMER_DEVICE float Floor(float x) { return floorf(x); }
ISOMER_DEVICE double Floor(double x) { return floor(x); }
ISOMER_DEVICE long long Floor(long long x) { return x; }
ISOMER_DEVICE float Round(float x) { return rintf(x); }
ISOMER_DEVICE double Round(double x) { return rint(x); }
ISOMER_DEVICE long long Round(long long x) { return x; }

// In [0, 1), exact in a float: pcg/support/hash.h's HashCombine(a, b).
ISOMER_DEVICE unsigned long long HashMix(unsigned long long x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}
ISOMER_DEVICE float Random(long long a, long long b) {
  const unsigned long long hash =
      HashMix(HashMix(static_cast<unsigned long long>(a)) ^ static_cast<unsigned long long>(b));
  return static_cast<float>(hash >> 40) * 5.9604644775390625e-08f;  // 2^-24
}

ISOMER_DEVICE void AtomicAdd(float* x, long long i, float value) {
#ifdef __CUDA_ARCH__
  atomicAdd(x + i, value);
#elif defined(ISOMER_HAS_BLOCKS)
  std::lock_guard lock(block_mutex);
  x[i] += value;
#else
  x[i] += value;
#endif
}

// What a lane has found, or several: nothing so far; a sum, a product or a maximum, and at which
// point that is.
template <typename T>
struct Part {
  T sum;
  long long place;
  bool is_first;
};
template <typename T>
ISOMER_DEVICE void AddPart(Part<T>* to, const Part<T>& part) {
  if (part.is_first) return;
  to->sum = to->is_first ? part.sum : to->sum + part.sum;
  to->is_first = false;
}
template <typename T>
ISOMER_DEVICE void MultiplyPart(Part<T>* to, const Part<T>& part) {
  if (part.is_first) return;
  to->sum = to->is_first ? part.sum : to->sum * part.sum;
  to->is_first = false;
}
// At a tie the first point counts.
template <typename T>
ISOMER_DEVICE void MaximumOfPart(Part<T>* to, const Part<T>& part) {
  if (part.is_first) return;
  if (to->is_first || part.sum > to->sum || (part.sum == to->sum && part.place < to->place)) {
    *to = part;
  } else {
    to->sum = Maximum(to->sum, part.sum);
  }
}

#ifdef ISOMER_HAS_BLOCKS
// One for all reductions of a kernel, one after the other.
constexpr int kThreads = 256;
template <typename T>
ISOMER_DEVICE Part<T>* PartsOfBlock() {
  __shared__ Part<T> parts[kThreads];
  return parts;
}
#endif

// All that `kLanes` lanes find for an element, part(lane, lanes) each, in an order that is always
// the same. A block has kElements elements, side by side, kLanes threads of each.
template <int kElements, int kLanes, typename T, typename Function, typename Combination>
ISOMER_DEVICE Part<T> Combine(Function part, Combination combine) {
#ifdef ISOMER_HAS_BLOCKS
  static_assert(kElements * kLanes <= kThreads);
  Part<T>* const parts = PartsOfBlock<T>();
  const int lane = threadIdx.x / kElements;
  parts[threadIdx.x] = part(lane, kLanes);
  __syncthreads();
  for (int half = kLanes / 2; half > 0; half /= 2) {
    if (lane < half) combine(&parts[threadIdx.x], parts[threadIdx.x + half * kElements]);
    __syncthreads();
  }
  const Part<T> all = parts[threadIdx.x % kElements];
  __syncthreads();  // Before the next element's.
  return all;
#else
  Part<T> parts[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) parts[lane] = part(lane, kLanes);
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane) combine(&parts[lane], parts[lane + half]);
  }
  return parts[0];
#endif
}

// Three words of the device: that there is a bad index, one of them, and whose it is.
ISOMER_DEVICE void ReportIndex(long long* error, long long kernel, long long index) {
  error[1] = index;
  error[2] = kernel;
  error[0] = 1;
}

}  // namespace
