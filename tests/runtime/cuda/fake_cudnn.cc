#include "tests/runtime/cuda/fake_cudnn.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <vector>

#include "runtime/device/elements.h"
#include "tests/runtime/cuda/fake_cuda_driver.h"
#include "tests/runtime/cuda/fake_streams.h"

namespace isomer {

std::atomic<int> fake_cudnn_runs = 0;
std::atomic<FakeCudnnRefuses> fake_cudnn_refuses = FakeCudnnRefuses::kNothing;

namespace {

using Handle = Cudnn::Handle;
constexpr int kInvalid = 2000, kNotSupported = 3000, kFailed = 5000;
constexpr int64_t kFakeWorkspace = 512;

struct Descriptor {
  int type = 0;
  bool is_final = false;
  std::map<int, std::vector<int64_t>> numbers;  // of integers, enumerations, booleans
  std::map<int, std::vector<Handle>> handles;   // of pointers and descriptors

  int64_t Number(int attribute) const { return numbers.at(attribute).at(0); }
  bool Has(int attribute) const { return handles.contains(attribute); }
  const Descriptor& Of(int attribute) const {
    return *static_cast<const Descriptor*>(handles.at(attribute).at(0));
  }
};
struct Library {
  void* device = nullptr;
  fake::Stream* stream = nullptr;
};

// A tensor of a graph that is computed: of one in memory `data`, where it lies.
struct Value {
  std::vector<int64_t> sizes, strides;
  int type = 0;
  bool is_scalar = false;
  char* data = nullptr;
  std::vector<double> elements;  // row-major

  int64_t count() const {
    int64_t product = 1;
    for (int64_t size : sizes) product *= size;
    return product;
  }
};

using Point = std::vector<int64_t>;
Point PointOf(const Value& value, int64_t i) {
  Point point(value.sizes.size());
  for (size_t d = point.size(); d-- > 0;) {
    point[d] = i % value.sizes[d];
    i /= value.sizes[d];
  }
  return point;
}
// Of a point of another tensor: along dims of one element it is broadcast, and of a dim that
// divides the other's, several of it have one here.
int64_t Place(const Value& value, const Point& point, const std::vector<int64_t>& sizes) {
  int64_t at = 0;
  for (size_t d = 0; d < point.size(); ++d) {
    at = at * value.sizes[d] + point[d] * value.sizes[d] / sizes[d];
  }
  return at;
}

DataType DtypeOfCudnn(int type) {
  return type == cudnn::kBFloat16  ? DataType::kBFloat16
         : type == cudnn::kFloat16 ? DataType::kFloat16
                                   : DataType::kFloat32;
}
int64_t OffsetOf(const Value& value, int64_t i) {
  const Point point = PointOf(value, i);
  int64_t offset = 0;
  for (size_t d = 0; d < point.size(); ++d) offset += point[d] * value.strides[d];
  return offset * BytesPerElement(DtypeOfCudnn(value.type));
}
void Load(Value* value) {
  value->elements.resize(value->count());
  for (int64_t i = 0; i < value->count(); ++i) {
    float element = 0;
    if (value->is_scalar) {
      std::memcpy(&element, value->data, sizeof element);
    } else {
      LoadElements(DtypeOfCudnn(value->type), value->data + OffsetOf(*value, i), 1, &element);
    }
    value->elements[i] = element;
  }
}
// Rounds to its type; into memory, if it is there.
void Keep(Value* value) {
  if (value->type == cudnn::kInt32 || value->type == cudnn::kBoolean) return;
  for (int64_t i = 0; i < value->count(); ++i) {
    auto element = static_cast<float>(value->elements[i]);
    char rounded[4];
    char* const to = value->data == nullptr ? rounded : value->data + OffsetOf(*value, i);
    StoreElements(&element, 1, DtypeOfCudnn(value->type), to);
    LoadElements(DtypeOfCudnn(value->type), to, 1, &element);
    value->elements[i] = element;
  }
}

class Evaluation {
 public:
  explicit Evaluation(std::map<int64_t, char*> pointers) : pointers_(std::move(pointers)) {}

  int Run(const std::vector<const Descriptor*>& operations) {
    for (const Descriptor* operation : operations) {
      switch (operation->type) {
        case cudnn::kPointwiseOperation:
          Pointwise(*operation);
          break;
        case cudnn::kReductionOperation:
          Reduce(*operation);
          break;
        case cudnn::kMatmulOperation:
          MatMul(*operation);
          break;
        case cudnn::kReshapeOperation:
          Reshape(*operation);
          break;
        default:
          return kFailed;
      }
    }
    return fake::kSuccess;
  }

 private:
  Value* Of(const Descriptor& tensor) {
    Value& value = values_[tensor.Number(cudnn::tensor::kId)];
    if (!value.sizes.empty()) return &value;
    value.sizes = tensor.numbers.at(cudnn::tensor::kSizes);
    value.strides = tensor.numbers.at(cudnn::tensor::kStrides);
    value.type = static_cast<int>(tensor.Number(cudnn::tensor::kType));
    value.is_scalar = tensor.Number(cudnn::tensor::kIsByValue) != 0;
    if (tensor.Number(cudnn::tensor::kIsVirtual) == 0) {
      value.data = pointers_.at(tensor.Number(cudnn::tensor::kId));
    }
    return &value;
  }
  const Value& Input(const Descriptor& tensor) {
    Value* const value = Of(tensor);
    if (value->elements.empty()) Load(value);  // Of the graph's inputs.
    return *value;
  }

  void Pointwise(const Descriptor& operation) {
    namespace o = cudnn::pointwise_operation;
    const Descriptor& description = operation.Of(o::kDescription);
    const int64_t mode = description.Number(cudnn::pointwise::kMode);
    const Value& x = Input(operation.Of(o::kX));
    const Value* b = operation.Has(o::kB) ? &Input(operation.Of(o::kB)) : nullptr;
    const Value* t = operation.Has(o::kT) ? &Input(operation.Of(o::kT)) : nullptr;
    Value* const y = Of(operation.Of(o::kY));
    std::vector<double> result(y->count());
    for (int64_t i = 0; i < y->count(); ++i) {
      const Point point = PointOf(*y, i);
      const auto at = [&](const Value* value) {
        return value == nullptr ? 0.0 : value->elements[Place(*value, point, y->sizes)];
      };
      const double left = at(&x), right = at(b);
      switch (mode) {
        case cudnn::kAdd:
          result[i] = left + right;
          break;
        case cudnn::kSubtract:
          result[i] = left - right;
          break;
        case cudnn::kMultiply:
          result[i] = left * right;
          break;
        case cudnn::kDivide:
          result[i] = left / right;
          break;
        case cudnn::kExp:
          result[i] = std::exp(left);
          break;
        case cudnn::kLog:
          result[i] = std::log(left);
          break;
        case cudnn::kIdentity:
          result[i] = left;
          break;
        case cudnn::kGreaterOrEqual:
          result[i] = left >= right ? 1 : 0;
          break;
        case cudnn::kIndex:
          result[i] = static_cast<double>(point[description.Number(cudnn::pointwise::kAxis)]);
          break;
        case cudnn::kSelect:
          result[i] = at(t) != 0 ? left : right;
          break;
        default:
          result[i] = std::numeric_limits<double>::quiet_NaN();
      }
    }
    y->elements = std::move(result);
    Keep(y);
  }

  void Reduce(const Descriptor& operation) {
    namespace o = cudnn::reduction_operation;
    const bool is_max =
        operation.Of(o::kDescription).Number(cudnn::reduction::kOperator) == cudnn::kMaximum;
    const Value& x = Input(operation.Of(o::kX));
    Value* const y = Of(operation.Of(o::kY));
    y->elements.assign(y->count(), is_max ? -std::numeric_limits<double>::infinity() : 0.0);
    for (int64_t i = 0; i < x.count(); ++i) {
      double& into = y->elements[Place(*y, PointOf(x, i), x.sizes)];
      into = is_max ? std::max(into, x.elements[i]) : into + x.elements[i];
    }
    Keep(y);
  }

  void MatMul(const Descriptor& operation) {
    namespace o = cudnn::matmul_operation;
    const Value &a = Input(operation.Of(o::kA)), &b = Input(operation.Of(o::kB));
    Value* const c = Of(operation.Of(o::kC));
    const size_t rank = c->sizes.size();
    std::vector<double> result(c->count());
    for (int64_t i = 0; i < c->count(); ++i) {
      const Point point = PointOf(*c, i);
      Point of_a = point, of_b = point;
      std::vector<int64_t> a_sizes = c->sizes, b_sizes = c->sizes;
      a_sizes[rank - 1] = a.sizes[rank - 1];
      b_sizes[rank - 2] = b.sizes[rank - 2];
      for (int64_t k = 0; k < a.sizes[rank - 1]; ++k) {
        of_a[rank - 1] = of_b[rank - 2] = k;
        result[i] += a.elements[Place(a, of_a, a_sizes)] * b.elements[Place(b, of_b, b_sizes)];
      }
    }
    c->elements = std::move(result);
    Keep(c);
  }

  // The last two dims exchanged, which is all that we ask for.
  void Reshape(const Descriptor& operation) {
    namespace o = cudnn::reshape_operation;
    const Value& x = Input(operation.Of(o::kX));
    Value* const y = Of(operation.Of(o::kY));
    y->elements.resize(y->count());
    const size_t rank = y->sizes.size();
    for (int64_t i = 0; i < y->count(); ++i) {
      Point point = PointOf(*y, i);
      std::swap(point[rank - 1], point[rank - 2]);
      y->elements[i] = x.elements[Place(x, point, x.sizes)];
    }
    Keep(y);
  }

  const std::map<int64_t, char*> pointers_;
  std::map<int64_t, Value> values_;
};

// Of a heuristic: whether its graph, a gradient if it has something transposed, has no plan.
bool IsRefused(const Descriptor& heuristic) {
  const auto& operations =
      heuristic.Of(cudnn::heuristic::kGraph).handles.at(cudnn::graph::kOperations);
  const bool is_gradient = std::any_of(operations.begin(), operations.end(), [](Handle operation) {
    return static_cast<const Descriptor*>(operation)->type == cudnn::kReshapeOperation;
  });
  return fake_cudnn_refuses == FakeCudnnRefuses::kAll ||
         (fake_cudnn_refuses == FakeCudnnRefuses::kGradients && is_gradient);
}

bool IsOfHandles(int type) {
  return type == cudnn::kOfHandle || type == cudnn::kOfPointer || type == cudnn::kOfDescriptor;
}

int SetAttribute(Handle handle, int attribute, int type, int64_t count, const void* elements) {
  auto* const of = static_cast<Descriptor*>(handle);
  if (of->is_final) return kInvalid;
  if (IsOfHandles(type)) {
    const auto* values = static_cast<const Handle*>(elements);
    of->handles[attribute] = {values, values + count};
    if (type == cudnn::kOfDescriptor) {
      for (Handle value : of->handles[attribute]) {
        if (!static_cast<Descriptor*>(value)->is_final) return kInvalid;
      }
    }
    return 0;
  }
  std::vector<int64_t>& numbers = of->numbers[attribute];
  for (int64_t i = 0; i < count; ++i) {
    if (type == cudnn::kOfInt64) {
      numbers.push_back(static_cast<const int64_t*>(elements)[i]);
    } else if (type == cudnn::kOfBool) {
      numbers.push_back(static_cast<const bool*>(elements)[i] ? 1 : 0);
    } else {
      numbers.push_back(static_cast<const int*>(elements)[i]);
    }
  }
  return 0;
}

int GetAttribute(Handle handle, int attribute, int, int64_t most, int64_t* count, void* elements) {
  const auto& of = *static_cast<Descriptor*>(handle);
  if (!of.is_final) return kInvalid;
  *count = 1;
  if (of.type == cudnn::kHeuristic && attribute == cudnn::heuristic::kResults) {
    if (most == 0) return 0;
    auto* const config = static_cast<Descriptor**>(elements)[0];
    config->handles[cudnn::heuristic::kGraph] = of.handles.at(cudnn::heuristic::kGraph);
    config->is_final = true;
    return 0;
  }
  if (of.type != cudnn::kPlan || attribute != cudnn::plan::kWorkspaceBytes) return kInvalid;
  *static_cast<int64_t*>(elements) = kFakeWorkspace;
  return 0;
}

int Execute(Handle handle, Handle plan, Handle pack) {
  const auto& library = *static_cast<Library*>(handle);
  const auto& of = *static_cast<Descriptor*>(plan);
  const auto& given = *static_cast<Descriptor*>(pack);
  if (library.device != FakeCurrentDevice() || !of.is_final || !given.is_final) return kInvalid;
  std::map<int64_t, char*> pointers;
  const std::vector<int64_t>& ids = given.numbers.at(cudnn::pack::kIds);
  for (size_t i = 0; i < ids.size(); ++i) {
    pointers[ids[i]] = static_cast<char*>(given.handles.at(cudnn::pack::kPointers)[i]);
  }
  void* const workspace = given.handles.at(cudnn::pack::kWorkspace)[0];
  std::vector<const Descriptor*> operations;
  for (Handle operation : of.Of(cudnn::plan::kConfig)
                              .Of(cudnn::heuristic::kGraph)
                              .handles.at(cudnn::graph::kOperations)) {
    operations.push_back(static_cast<const Descriptor*>(operation));
  }
  ++fake_cudnn_runs;
  // Numbers on the host are read now, as they may be gone by then.
  std::map<int64_t, float> scalars;
  for (const Descriptor* operation : operations) {
    for (const auto& [attribute, handles] : operation->handles) {
      const auto& tensor = *static_cast<const Descriptor*>(handles[0]);
      if (tensor.type != cudnn::kTensor || tensor.Number(cudnn::tensor::kIsByValue) == 0) continue;
      const int64_t id = tensor.Number(cudnn::tensor::kId);
      std::memcpy(&scalars[id], pointers.at(id), sizeof(float));
    }
  }
  return fake::Give(library.stream, {[=]() mutable {
                      std::memset(workspace, 0xff, kFakeWorkspace);
                      for (auto& [id, value] : scalars) {
                        pointers[id] = reinterpret_cast<char*>(&value);
                      }
                      return Evaluation(pointers).Run(operations);
                    }});
}

}  // namespace

Cudnn FakeCudnn() {
  Cudnn cudnn;
  cudnn.create = [](Handle* handle) {
    *handle = new Library{FakeCurrentDevice()};
    return FakeCurrentDevice() == nullptr ? kInvalid : 0;
  };
  cudnn.destroy = [](Handle handle) {
    delete static_cast<Library*>(handle);
    return 0;
  };
  cudnn.set_stream = [](Handle handle, Handle stream) {
    static_cast<Library*>(handle)->stream = static_cast<fake::Stream*>(stream);
    return 0;
  };
  cudnn.create_descriptor = [](int type, Handle* descriptor) {
    auto* const made = new Descriptor();
    made->type = type;
    *descriptor = made;
    return 0;
  };
  cudnn.destroy_descriptor = [](Handle descriptor) {
    delete static_cast<Descriptor*>(descriptor);
    return 0;
  };
  cudnn.set_attribute = SetAttribute;
  cudnn.get_attribute = GetAttribute;
  cudnn.finalize = [](Handle descriptor) {
    auto* const of = static_cast<Descriptor*>(descriptor);
    if (of->type == cudnn::kHeuristic && IsRefused(*of)) return kNotSupported;
    of->is_final = true;
    return 0;
  };
  cudnn.execute = Execute;
  cudnn.last_error = [](char* text, size_t size) { std::strncpy(text, "of the fake", size); };
  return cudnn;
}

}  // namespace isomer
