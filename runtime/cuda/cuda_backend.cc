#include "runtime/cuda/cuda_backend.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <mutex>
#include <numeric>
#include <shared_mutex>
#include <utility>
#include <variant>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "pcg/schedule/memory/memory.h"
#include "pcg/support/cache_folder.h"
#include "pcg/support/status_macros.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/cuda_queues.h"
#include "runtime/cuda/generated_kernel.h"
#include "runtime/cuda/nccl_communicator.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/cuda/operation_parameters.h"
#include "runtime/cuda/prepared_product.h"
#include "runtime/cuda/products.h"
#include "runtime/device/elements.h"

namespace isomer {
namespace {

// A GPU, and the kernels of operations.cuh on it.
struct Gpu {
  std::unique_ptr<CudaDevice> device;
  void *fill, *fill_scaled, *add, *convert, *update, *copy_region, *sum_pieces, *sum_terms,
      *are_finite, *sum_of_squares, *sum_lanes;
  void* found = nullptr;    // FiniteParameters::found
  void* squares = nullptr;  // of SumOfSquares; made when it is asked for
  std::mutex finds;         // who uses them

  ~Gpu() {
    if (found != nullptr) device->Free(found);
    if (squares != nullptr) device->Free(squares);
  }
};

// Whose memory an address is of. For all backends of the process, as memory is freed by who knows
// nothing but its address.
class Allocations {
 public:
  static Allocations& All() {
    static auto* all = new Allocations();
    return *all;
  }

  struct Piece {
    int64_t bytes = 0;
    std::shared_ptr<Gpu> gpu;
    bool is_on_host = false;
  };
  void Add(void* begin, Piece piece) {
    std::unique_lock lock(mutex_);
    pieces_[reinterpret_cast<uintptr_t>(begin)] = std::move(piece);
  }
  Piece Remove(void* begin) {
    std::unique_lock lock(mutex_);
    auto piece = pieces_.extract(reinterpret_cast<uintptr_t>(begin));
    return piece.empty() ? Piece() : std::move(piece.mapped());
  }
  // Null: nobody's.
  Gpu* Find(const void* pointer) const {
    std::shared_lock lock(mutex_);
    const auto at = reinterpret_cast<uintptr_t>(pointer);
    auto piece = pieces_.upper_bound(at);
    if (piece == pieces_.begin()) return nullptr;
    --piece;
    const bool is_inside = at - piece->first < static_cast<uintptr_t>(piece->second.bytes);
    return is_inside ? piece->second.gpu.get() : nullptr;
  }

 private:
  mutable std::shared_mutex mutex_;
  std::map<uintptr_t, Piece> pieces_;  // by first byte
};

absl::StatusOr<Gpu*> GpuOf(const void* pointer) {
  Gpu* gpu = Allocations::All().Find(pointer);
  if (gpu == nullptr) return absl::InternalError("an address that is of no GPU's memory");
  return gpu;
}

class CudaKernel : public Kernel {
 public:
  CudaKernel(std::shared_ptr<Gpu> gpu, GeneratedKernel kernel, std::vector<void*> functions,
             int64_t number)
      : gpu_(std::move(gpu)),
        kernel_(std::move(kernel)),
        functions_(std::move(functions)),
        number_(number) {}
  int64_t workspace_bytes() const override { return kernel_.workspace_bytes; }
  absl::Status Run(absl::Span<const void* const> reads, absl::Span<void* const> writes,
                   void* workspace) override {
    CudaDevice& device = *gpu_->device;
    const std::vector<char> arguments =
        PackArguments(kernel_, reads, writes, workspace, device.error_words(), number_);
    for (size_t i = 0; i < functions_.size(); ++i) {
      ISOMER_RETURN_IF_ERROR(device.Launch(functions_[i], kernel_.launches[i].elements,
                                           arguments.data(),
                                           kernel_.launches[i].elements_per_block));
    }
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<Gpu> gpu_;
  const GeneratedKernel kernel_;
  const std::vector<void*> functions_;
  const int64_t number_;
};

// A plan of cuDNN's; what it reads is among what it is given to write.
class CudnnKernel : public Kernel {
 public:
  CudnnKernel(std::shared_ptr<Gpu> gpu, std::unique_ptr<CudnnPlan> plan)
      : gpu_(std::move(gpu)), plan_(std::move(plan)) {}
  int64_t workspace_bytes() const override { return plan_->workspace_bytes(); }
  absl::Status Run(absl::Span<const void* const>, absl::Span<void* const> tensors,
                   void* workspace) override {
    return gpu_->device->RunPlan(plan_.get(), tensors, workspace);
  }

 private:
  const std::shared_ptr<Gpu> gpu_;
  const std::unique_ptr<CudnnPlan> plan_;
};

// Products, and other kernels around them (products.h).
class CudaProductKernel : public Kernel {
 public:
  struct Step {
    ProductStep product;  // if `prepared`
    std::unique_ptr<PreparedProduct> prepared;
    std::vector<GpuPlace> reads, writes;  // of any other kernel
    std::unique_ptr<Kernel> kernel;
    int64_t workspace_bytes() const {
      return prepared != nullptr ? prepared->workspace_bytes() : kernel->workspace_bytes();
    }
  };

  // `own_bytes`: of the workspace, before what steps need.
  CudaProductKernel(std::shared_ptr<Gpu> gpu, std::vector<Step> steps, int64_t own_bytes)
      : gpu_(std::move(gpu)), steps_(std::move(steps)), own_bytes_(own_bytes) {
    for (const Step& step : steps_) {
      of_steps_bytes_ = std::max(of_steps_bytes_, step.workspace_bytes());
    }
  }
  int64_t workspace_bytes() const override { return own_bytes_ + of_steps_bytes_; }

  absl::Status Run(absl::Span<const void* const> reads, absl::Span<void* const> writes,
                   void* workspace) override {
    char* const own = static_cast<char*>(workspace);
    char* const of_step = own + own_bytes_;
    const auto at = [&](const GpuPlace& place) -> char* {
      switch (place.kind) {
        case GpuPlace::kNone:
          return nullptr;
        case GpuPlace::kRead: {
          const char* buffer = static_cast<const char*>(reads[place.index]);
          return const_cast<char*>(buffer == nullptr ? nullptr : buffer + place.bytes);
        }
        case GpuPlace::kWrite:
          return static_cast<char*>(writes[place.index]) + place.bytes;
        case GpuPlace::kWorkspace:
          return own + place.bytes;
      }
      return nullptr;
    };
    for (const Step& step : steps_) {
      if (step.prepared != nullptr) {
        ISOMER_RETURN_IF_ERROR(gpu_->device->RunProduct(*step.prepared, at(step.product.a),
                                                        at(step.product.b), at(step.product.d),
                                                        at(step.product.bias), of_step));
        continue;
      }
      std::vector<const void*> read;
      std::vector<void*> written;
      for (const GpuPlace& place : step.reads) read.push_back(at(place));
      for (const GpuPlace& place : step.writes) written.push_back(at(place));
      ISOMER_RETURN_IF_ERROR(step.kernel->Run(read, written, of_step));
    }
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<Gpu> gpu_;
  const std::vector<Step> steps_;
  const int64_t own_bytes_;
  int64_t of_steps_bytes_ = 0;
};

absl::Status CheckRank(size_t rank) {
  if (rank <= static_cast<size_t>(kMostDims)) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("--backend=cuda: a tensor of rank ", rank, ": ", kMostDims, " is the most"));
}

static_assert(sizeof(UpdateFactors) == 5 * sizeof(double));  // UpdateParameters::factors

class CudaOperations : public DeviceOperations {
 public:
  explicit CudaOperations(bool has_one_gpu) : has_one_gpu_(has_one_gpu) {}

  bool shares_host_memory() const override { return false; }
  bool reaches_other_devices() const override { return has_one_gpu_; }

  absl::Status Copy(const void* from, int64_t bytes, void* to) override {
    if (bytes == 0 || from == to) return absl::OkStatus();
    ISOMER_ASSIGN_OR_RETURN(Gpu * gpu, GpuOf(to));
    return gpu->device->Copy(from, bytes, to);
  }
  absl::Status Fill(double value, int64_t count, DataType dtype, void* to) override {
    if (count == 0) return absl::OkStatus();
    ISOMER_ASSIGN_OR_RETURN(Gpu * gpu, GpuOf(to));
    uint64_t bits = 0;
    FillElements(value, 1, dtype, &bits);
    const FillParameters parameters = {to, count, BytesPerElement(dtype), bits};
    return gpu->device->Launch(gpu->fill, count, &parameters);
  }
  absl::Status FillScaled(double value, const double* factor, int64_t count, DataType dtype,
                          void* to) override {
    if (count == 0) return absl::OkStatus();
    ISOMER_ASSIGN_OR_RETURN(Gpu * gpu, GpuOf(to));
    const ScaledFillParameters parameters = {to, factor, count, static_cast<int64_t>(dtype), value};
    return gpu->device->Launch(gpu->fill_scaled, count, &parameters);
  }
  absl::Status Add(DataType from_dtype, const void* from, int64_t count, DataType dtype,
                   void* to) override {
    return OfFloats(&Gpu::add, from_dtype, from, count, dtype, to);
  }
  absl::Status Convert(DataType from_dtype, const void* from, int64_t count, DataType dtype,
                       void* to) override {
    return OfFloats(&Gpu::convert, from_dtype, from, count, dtype, to);
  }

  absl::Status Update(const UpdateRule& rule, const UpdateFactors* factors,
                      const Gradient& gradient, int64_t count, const float* weights, float* updated,
                      absl::Span<float* const> states, const LowWeights& low) override {
    if (count == 0) return absl::OkStatus();
    ISOMER_ASSIGN_OR_RETURN(Gpu * gpu, GpuOf(updated));
    UpdateParameters p = {};
    p.gradient = gradient.data;
    p.weights = weights;
    p.updated = updated;
    for (size_t i = 0; i < states.size(); ++i) p.states[i] = states[i];
    p.low = low.data;
    p.count = count;
    p.factors = &factors->rate;
    // Of one weight alone, LAMB's and Muon's are Adam's (runtime/device/update.h).
    const bool is_adams = TraitsOf(rule.optimizer).needs != UpdateNeeds::kElement;
    p.optimizer = static_cast<int64_t>(is_adams ? OptimizerKind::kAdam : rule.optimizer);
    p.decays = rule.decays ? 1 : 0;
    p.nesterov = rule.settings.nesterov ? 1 : 0;
    p.gradient_dtype = static_cast<int64_t>(gradient.dtype);
    p.low_dtype = static_cast<int64_t>(low.dtype);
    p.momentum = rule.settings.momentum;
    p.b1 = rule.settings.beta1;
    p.b2 = rule.settings.beta2;
    p.c1 = 1 - rule.settings.beta1;
    p.c2 = 1 - rule.settings.beta2;
    p.epsilon = rule.settings.epsilon;
    return gpu->device->Launch(gpu->update, count, &p);
  }

  absl::Status CopyRegion(const Box& region, const Box& from_box, const void* from,
                          const Box& to_box, void* to, int64_t element_bytes) override {
    if (region.empty()) return absl::OkStatus();
    ISOMER_RETURN_IF_ERROR(CheckRank(region.shape.size()));
    ISOMER_ASSIGN_OR_RETURN(Gpu * gpu, GpuOf(to));
    RegionParameters p = {};
    p.count = region.Volume();
    p.element_bytes = element_bytes;
    p.rank = static_cast<int64_t>(region.shape.size());
    const std::vector<int64_t> from_strides = RowMajorStrides(from_box),
                               to_strides = RowMajorStrides(to_box);
    for (size_t i = 0; i < region.shape.size(); ++i) {
      p.shape[i] = region.shape[i];
      p.from_stride[i] = from_strides[i];
      p.to_stride[i] = to_strides[i];
    }
    p.from = static_cast<const char*>(from) + FirstOffset(region, from_box) * element_bytes;
    p.to = static_cast<char*>(to) + FirstOffset(region, to_box) * element_bytes;
    return gpu->device->Launch(gpu->copy_region, p.count, &p);
  }

  // Many pieces in several passes, of which each rounds what it has so far.
  absl::Status SumPieces(absl::Span<const MovedPiece> pieces, const Box& box, DataType dtype,
                         void* buffer) override {
    if (box.empty()) return absl::OkStatus();
    ISOMER_RETURN_IF_ERROR(CheckRank(box.shape.size()));
    ISOMER_ASSIGN_OR_RETURN(Gpu * gpu, GpuOf(buffer));
    PiecesParameters p = {};
    p.to = buffer;
    p.count = box.Volume();
    p.dtype = static_cast<int64_t>(dtype);
    p.rank = static_cast<int64_t>(box.shape.size());
    for (size_t i = 0; i < box.shape.size(); ++i) p.shape[i] = box.shape[i];
    do {
      const size_t now = std::min(pieces.size(), static_cast<size_t>(kMostPieces));
      p.pieces = static_cast<int64_t>(now);
      for (size_t k = 0; k < now; ++k) {
        const MovedPiece& piece = pieces[k];
        const std::vector<int64_t> strides = RowMajorStrides(piece.box);
        for (size_t i = 0; i < box.shape.size(); ++i) {
          p.begin[k][i] = piece.region.origin[i] - box.origin[i];
          p.size[k][i] = piece.region.shape[i];
          p.stride[k][i] = strides[i];
        }
        p.from[k] = static_cast<const char*>(piece.data) +
                    FirstOffset(piece.region, piece.box) * BytesPerElement(dtype);
      }
      ISOMER_RETURN_IF_ERROR(gpu->device->Launch(gpu->sum_pieces, p.count, &p));
      pieces.remove_prefix(now);
      p.adds = 1;
    } while (!pieces.empty());
    return absl::OkStatus();
  }

  // As many at a time as a kernel takes; what is there is one of the next ones.
  absl::Status SumTerms(DataType dtype, absl::Span<const void* const> terms, int64_t count,
                        void* to) override {
    if (count == 0) return absl::OkStatus();
    ISOMER_ASSIGN_OR_RETURN(Gpu * gpu, GpuOf(to));
    if (terms.size() > static_cast<size_t>(kMostTerms) && absl::c_linear_search(terms, to)) {
      return absl::UnimplementedError(absl::StrCat("--backend=cuda: a sum in place of more than ",
                                                   kMostTerms, " devices' terms"));
    }
    TermsParameters p = {};
    p.to = to;
    p.count = count;
    p.dtype = static_cast<int64_t>(dtype);
    do {
      const size_t now = std::min(terms.size(), static_cast<size_t>(kMostTerms));
      p.terms = static_cast<int64_t>(now);
      std::copy_n(terms.begin(), now, p.from);
      ISOMER_RETURN_IF_ERROR(gpu->device->Launch(gpu->sum_terms, count, &p));
      terms.remove_prefix(now);
      p.adds = 1;
    } while (!terms.empty());
    return absl::OkStatus();
  }

  absl::StatusOr<bool> AreFinite(DataType dtype, const void* data, int64_t count) override {
    if (count == 0) return true;
    ISOMER_ASSIGN_OR_RETURN(Gpu * gpu, GpuOf(data));
    // Devices that share a GPU ask at one time.
    std::lock_guard lock(gpu->finds);
    int64_t found = 0;
    ISOMER_RETURN_IF_ERROR(gpu->device->FromHost(&found, sizeof found, gpu->found));
    const FiniteParameters parameters = {data, count, static_cast<int64_t>(dtype),
                                         static_cast<long long*>(gpu->found)};
    ISOMER_RETURN_IF_ERROR(gpu->device->Launch(gpu->are_finite, count, &parameters));
    ISOMER_RETURN_IF_ERROR(gpu->device->ToHost(gpu->found, sizeof found, &found));
    return found == 0;
  }

  // Each of many threads adds some of the numbers, each of a few some of their sums, and the host
  // the rest.
  absl::StatusOr<double> SumOfSquares(DataType dtype, const void* data, int64_t count) override {
    if (count == 0) return 0.0;
    ISOMER_ASSIGN_OR_RETURN(Gpu * gpu, GpuOf(data));
    std::lock_guard lock(gpu->finds);
    if (gpu->squares == nullptr) {
      ISOMER_ASSIGN_OR_RETURN(gpu->squares,
                              gpu->device->Allocate((kSquareLanes + kLastLanes) * sizeof(double)));
    }
    auto* const of_lanes = static_cast<double*>(gpu->squares);
    double* const last = of_lanes + kSquareLanes;
    const int64_t lanes = std::min(count, kSquareLanes), last_lanes = std::min(count, kLastLanes);
    const SquaresParameters squares = {data, count, static_cast<int64_t>(dtype), lanes, of_lanes};
    ISOMER_RETURN_IF_ERROR(gpu->device->Launch(gpu->sum_of_squares, lanes, &squares));
    const LanesParameters sums = {of_lanes, lanes, last_lanes, last};
    ISOMER_RETURN_IF_ERROR(gpu->device->Launch(gpu->sum_lanes, last_lanes, &sums));
    std::vector<double> rest(last_lanes);
    ISOMER_RETURN_IF_ERROR(
        gpu->device->ToHost(last, last_lanes * static_cast<int64_t>(sizeof(double)), rest.data()));
    return std::accumulate(rest.begin(), rest.end(), 0.0);
  }

  absl::Status FromHost(const void* host, int64_t bytes, void* device) override {
    if (bytes == 0) return absl::OkStatus();
    ISOMER_ASSIGN_OR_RETURN(Gpu * gpu, GpuOf(device));
    return gpu->device->FromHost(host, bytes, device);
  }
  absl::Status ToHost(const void* device, int64_t bytes, void* host) override {
    if (bytes == 0) return absl::OkStatus();
    ISOMER_ASSIGN_OR_RETURN(Gpu * gpu, GpuOf(device));
    return gpu->device->ToHost(device, bytes, host);
  }

  absl::Status Wait(const void* memory) override {
    ISOMER_ASSIGN_OR_RETURN(Gpu * gpu, GpuOf(memory));
    return gpu->device->Wait();
  }

 private:
  static constexpr int64_t kSquareLanes = 65536, kLastLanes = 256;

  static absl::Status OfFloats(void* Gpu::*kernel, DataType from_dtype, const void* from,
                               int64_t count, DataType dtype, void* to) {
    if (count == 0) return absl::OkStatus();
    ISOMER_ASSIGN_OR_RETURN(Gpu * gpu, GpuOf(to));
    const FloatParameters parameters = {from, to, count, static_cast<int64_t>(from_dtype),
                                        static_cast<int64_t>(dtype)};
    return gpu->device->Launch(gpu->*kernel, count, &parameters);
  }

  const bool has_one_gpu_;
};

int NumGpus(const CudaDriver& driver) {
  int count = 0;
  return driver.device_count(&count) == 0 ? count : 0;
}

class CudaBackend : public Backend {
 public:
  explicit CudaBackend(CudaToolchain toolchain)
      : toolchain_(std::make_shared<const CudaToolchain>(std::move(toolchain))),
        has_one_gpu_(NumGpus(toolchain_->driver) == 1),
        operations_(has_one_gpu_) {}

  absl::string_view name() const override { return "cuda"; }
  std::string Libraries() const override { return toolchain_->compiler; }
  absl::StatusOr<std::string> DeviceName() override {
    ISOMER_ASSIGN_OR_RETURN(const std::shared_ptr<Gpu> gpu, Entered());
    return gpu->device->name();
  }
  absl::StatusOr<CacheSizes> Caches(int64_t) override {
    ISOMER_ASSIGN_OR_RETURN(const std::shared_ptr<Gpu> gpu, Entered());
    const int64_t bytes = gpu->device->last_cache_bytes();
    return CacheSizes{bytes, bytes};
  }
  void EnterDevice(int32_t device, int32_t) override { entered_ = device; }

  absl::StatusOr<Memory> Allocate(int64_t bytes) override {
    ISOMER_ASSIGN_OR_RETURN(const std::shared_ptr<Gpu> gpu, Entered());
    ISOMER_ASSIGN_OR_RETURN(void* memory, gpu->device->Allocate(bytes));
    Allocations::All().Add(memory, {std::max<int64_t>(bytes, 1), gpu, false});
    return Memory(static_cast<char*>(memory), Free);
  }
  absl::StatusOr<Memory> AllocateOnHost(int64_t bytes) override {
    ISOMER_ASSIGN_OR_RETURN(const std::shared_ptr<Gpu> gpu, Entered());
    ISOMER_ASSIGN_OR_RETURN(void* memory, gpu->device->AllocateOnHost(bytes));
    Allocations::All().Add(memory, {std::max<int64_t>(bytes, 1), gpu, true});
    return Memory(static_cast<char*>(memory), Free);
  }

  absl::StatusOr<std::unique_ptr<Kernel>> MakeKernel(const KernelCall& call) override {
    if (Fp8ScalingOf(call.op) != Fp8Scaling::kNone) {
      return absl::UnimplementedError(
          absl::StrCat("cuda backend: ", call.op.name(),
                       " in 8 bits (--precision=fp8) runs on the cpu backend alone"));
    }
    ISOMER_ASSIGN_OR_RETURN(std::shared_ptr<Gpu> gpu, Entered());
    GpuStepOptions options = {.most_part_bytes = toolchain_->most_part_bytes};
    std::optional<GpuSteps> steps = StepsOfProducts(call, options);
    if (!steps) return MakeGenerated(gpu, call);
    absl::StatusOr<std::unique_ptr<Kernel>> made = MakeProduct(gpu, call.op, *std::move(steps));
    if (!absl::IsUnimplemented(made.status())) return made;
    // Attention that cuDNN does not do.
    options.fuses_attention = false;
    return MakeProduct(gpu, call.op, *StepsOfProducts(call, options));
  }

  DeviceOperations& operations() override { return operations_; }

  absl::StatusOr<std::unique_ptr<DeviceQueues>> MakeQueues() override {
    ISOMER_ASSIGN_OR_RETURN(const std::shared_ptr<Gpu> gpu, Entered());
    return CudaQueues::Make(gpu->device.get());
  }

  absl::StatusOr<std::unique_ptr<Communicator>> MakeCommunicator(
      ControlPlane* control, const CommunicationGroups& groups,
      std::chrono::milliseconds timeout) override {
    ISOMER_ASSIGN_OR_RETURN(const std::shared_ptr<Gpu> gpu, Entered());
    Nccl nccl = {};
    if (groups.has_messages || !groups.of_collectives.empty()) {
      ISOMER_ASSIGN_OR_RETURN(nccl, toolchain_->open_nccl());
    }
    return NcclCommunicator::Make(nccl, gpu->device.get(), control, groups, timeout);
  }

 private:
  static void Free(char* memory) {
    const Allocations::Piece piece = Allocations::All().Remove(memory);
    if (piece.gpu == nullptr) return;
    piece.is_on_host ? piece.gpu->device->FreeOnHost(memory) : piece.gpu->device->Free(memory);
  }

  static absl::StatusOr<std::unique_ptr<Kernel>> MakeGenerated(const std::shared_ptr<Gpu>& gpu,
                                                               const KernelCall& call) {
    std::optional<GeneratedKernel> kernel = GenerateKernel(call, "k");
    if (!kernel) {
      return absl::InternalError(absl::StrCat("no kernel computes ", call.op.ToString()));
    }
    CudaDevice& device = *gpu->device;
    ISOMER_ASSIGN_OR_RETURN(void* const module, device.Load(kernel->text));
    std::vector<void*> functions;
    for (const GeneratedKernel::Launch& launch : kernel->launches) {
      ISOMER_ASSIGN_OR_RETURN(functions.emplace_back(), device.FunctionOf(module, launch.name));
    }
    const int64_t number = device.NumberOf(call.op.ToString());
    return std::make_unique<CudaKernel>(gpu, *std::move(kernel), std::move(functions), number);
  }

  static absl::StatusOr<std::unique_ptr<Kernel>> MakeProduct(const std::shared_ptr<Gpu>& gpu,
                                                             const Operator& op, GpuSteps steps) {
    std::vector<CudaProductKernel::Step> made;
    std::deque<GpuStep> rest(std::make_move_iterator(steps.steps.begin()),
                             std::make_move_iterator(steps.steps.end()));
    while (!rest.empty()) {
      const GpuStep step = std::move(rest.front());
      rest.pop_front();
      if (const auto* product = std::get_if<ProductStep>(&step)) {
        auto prepared = gpu->device->Prepare(product->product, AlignmentOf(*product));
        if (absl::IsUnimplemented(prepared.status())) {
          const std::vector<GpuStep> instead = WithoutLibrary(op, *product);
          rest.insert(rest.begin(), instead.begin(), instead.end());
          continue;
        }
        CudaProductKernel::Step& next = made.emplace_back();
        ISOMER_ASSIGN_OR_RETURN(next.prepared, std::move(prepared));
        next.product = *product;
        continue;
      }
      CudaProductKernel::Step& next = made.emplace_back();
      if (const auto* fused = std::get_if<FusedStep>(&step)) {
        ISOMER_ASSIGN_OR_RETURN(std::unique_ptr<CudnnPlan> plan,
                                gpu->device->Prepare(fused->attention));
        next.kernel = std::make_unique<CudnnKernel>(gpu, std::move(plan));
        next.writes = fused->places;
        continue;
      }
      const auto& generated = std::get<GeneratedStep>(step);
      next.reads = generated.reads;
      next.writes = generated.writes;
      ISOMER_ASSIGN_OR_RETURN(next.kernel, MakeGenerated(gpu, generated.call));
    }
    return std::make_unique<CudaProductKernel>(gpu, std::move(made), steps.workspace_bytes);
  }
  // What all addresses of a product are multiples of, buffers being of kAlignment.
  static int64_t AlignmentOf(const ProductStep& step) {
    int64_t alignment = kAlignment;
    for (const GpuPlace& place : {step.a, step.b, step.d, step.bias}) {
      alignment = std::gcd(alignment, place.bytes);
    }
    return alignment;
  }

  // The GPU of the thread that calls.
  absl::StatusOr<std::shared_ptr<Gpu>> Entered() {
    const int32_t ordinal = has_one_gpu_ ? 0 : entered_;
    std::lock_guard lock(mutex_);
    std::shared_ptr<Gpu>& gpu = gpus_[ordinal];
    if (gpu == nullptr) {
      ISOMER_ASSIGN_OR_RETURN(std::shared_ptr<Gpu> opened, Open(ordinal));
      gpu = std::move(opened);
    }
    return gpu;
  }
  absl::StatusOr<std::shared_ptr<Gpu>> Open(int32_t ordinal) {
    auto gpu = std::make_shared<Gpu>();
    ISOMER_ASSIGN_OR_RETURN(gpu->device, CudaDevice::Open(toolchain_, ordinal));
    CudaDevice& device = *gpu->device;
    ISOMER_ASSIGN_OR_RETURN(void* const module, device.Load(std::string(OperationKernels())));
    const std::pair<const char*, void**> kernels[] = {
        {"isomer_fill", &gpu->fill},
        {"isomer_fill_scaled", &gpu->fill_scaled},
        {"isomer_add", &gpu->add},
        {"isomer_convert", &gpu->convert},
        {"isomer_update", &gpu->update},
        {"isomer_copy_region", &gpu->copy_region},
        {"isomer_sum_pieces", &gpu->sum_pieces},
        {"isomer_sum_terms", &gpu->sum_terms},
        {"isomer_are_finite", &gpu->are_finite},
        {"isomer_sum_of_squares", &gpu->sum_of_squares},
        {"isomer_sum_lanes", &gpu->sum_lanes},
    };
    for (const auto& [name, function] : kernels) {
      ISOMER_ASSIGN_OR_RETURN(*function, device.FunctionOf(module, name));
    }
    ISOMER_ASSIGN_OR_RETURN(gpu->found, device.Allocate(sizeof(int64_t)));
    return gpu;
  }

  static thread_local int32_t entered_;
  const std::shared_ptr<const CudaToolchain> toolchain_;
  const bool has_one_gpu_;
  CudaOperations operations_;
  std::mutex mutex_;
  std::map<int32_t, std::shared_ptr<Gpu>> gpus_;
};

thread_local int32_t CudaBackend::entered_ = 0;

}  // namespace

absl::StatusOr<CudaToolchain> ThisCudaToolchain() {
  CudaToolchain toolchain;
  ISOMER_ASSIGN_OR_RETURN(toolchain.driver, OpenCudaDriver());
  ISOMER_ASSIGN_OR_RETURN(toolchain.products, OpenCublasLt());
  ISOMER_RETURN_IF_ERROR(HasNvrtc());
  toolchain.open_nccl = OpenNccl;
  toolchain.open_cudnn = OpenCudnn;
  toolchain.compile = CompileForGpu;
  toolchain.compiler = absl::StrCat("NVRTC ", NvrtcVersion());
  toolchain.cache_folder = CacheFolder("kernels");
  return toolchain;
}

std::unique_ptr<Backend> MakeCudaBackend(CudaToolchain toolchain) {
  return std::make_unique<CudaBackend>(std::move(toolchain));
}

}  // namespace isomer
