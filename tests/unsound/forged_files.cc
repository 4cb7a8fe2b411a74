// Files that are cut, damaged, or changed after they were sealed.
#include "absl/strings/str_cat.h"
#include "tests/unsound/false_plans.h"

namespace isomer {
namespace {

// The header of pcg/support/proto_io.h: magic, kind, version, size of what follows, digest.
constexpr size_t kKindAt = 8, kVersionAt = 24, kSizeAt = 32, kDigestAt = 40, kHeaderSize = 48;

FileChange Byte(size_t at, char flips) {
  return [=](std::string* file) { (*file)[at] = static_cast<char>((*file)[at] ^ flips); };
}
FileChange CutTo(size_t size) {
  return [=](std::string* file) { file->resize(size); };
}
FileChange CutBy(size_t bytes) {
  return [=](std::string* file) { file->resize(file->size() - bytes); };
}
// After the seal.
Forgery Unsealed(const std::string& name, std::function<void(Plan*)> change,
                 const std::string& base = "data") {
  return {"seal",
          name,
          base,
          [=](PlanClaim* claim) { change(&claim->plan); },
          "seal: the plan was changed after it was made",
          /*keeps_seal=*/true};
}

}  // namespace

std::vector<Forgery> ForgedFiles() {
  return {
      {"files", "nothing", "data", CutTo(0), "is empty"},
      {"files", "cut in the header", "data", CutTo(kHeaderSize - 1), "end within the header"},
      {"files", "cut behind the header", "data", CutTo(kHeaderSize), "truncated: 0 of"},
      {"files", "cut by a byte", "data", CutBy(1), "truncated"},
      {"files", "cut by half", "data", [](std::string* f) { f->resize(f->size() / 2); },
       "truncated"},
      {"files", "a byte more", "data", [](std::string* f) { f->push_back('\0'); }, "damaged"},
      {"files", "another plan behind it", "data", [](std::string* f) { *f += std::string(*f); },
       "damaged"},
      {"files", "another magic", "data", Byte(0, 1), "is not an Isomer file"},
      {"files", "another kind", "data", Byte(kKindAt, 1), "is a file of kind"},
      {"files", "another version", "data", Byte(kVersionAt, 2), "format version"},
      {"files", "a huge size", "data", Byte(kSizeAt + 7, 0x7f), "truncated"},
      {"files", "another digest", "data", Byte(kDigestAt, 1), "digest does not match"},
      {"files", "one bit in the middle", "data", [](std::string* f) { (*f)[f->size() / 2] ^= 4; },
       "digest does not match"},
      {"files", "the last bit", "data", [](std::string* f) { f->back() ^= 1; },
       "digest does not match"},
      {"files", "words", "data", [](std::string* f) { *f = "a fast plan\n"; },
       "is not an Isomer file"},
      {"files", "a tensor of too many dims", "data",
       [](proto::PlanProto* p) {
         auto* type = p->mutable_graph()->mutable_nodes(0)->mutable_outputs(0);
         for (int i = 0; i < 100; ++i) {
           type->add_dims()->set_size(1);
           type->mutable_dims(type->dims_size() - 1)->set_degree(1);
         }
       },
       "at most 64"},
      {"files", "a tensor of too many elements", "data",
       [](proto::PlanProto* p) {
         auto* dims = p->mutable_graph()->mutable_nodes(0)->mutable_outputs(0)->mutable_dims();
         for (auto& dim : *dims) dim.set_size(int64_t{1} << 40);
       },
       "2^48 elements"},
      {"files", "a tensor of too many copies", "data",
       [](proto::PlanProto* p) {
         p->mutable_graph()->mutable_nodes(6)->mutable_outputs(0)->set_copies(int64_t{1} << 62);
       },
       "2^20 shards"},
      {"files", "a tensor of too many micro-batches", "data",
       [](proto::PlanProto* p) {
         p->mutable_graph()->mutable_nodes(6)->mutable_outputs(0)->set_micro_batches(-1);
       },
       "2^20 shards"},
      {"files", "as it is", "data", [](std::string*) {}, ""},

      Unsealed("another prediction", [](Plan* p) { p->predicted_step_us *= 0.5; }),
      Unsealed("less memory", [](Plan* p) { p->predicted_peak_bytes = 1; }),
      Unsealed("another machine", [](Plan* p) { p->machine = "moon"; }),
      Unsealed("more devices", [](Plan* p) { p->num_devices += 1; }),
      Unsealed("another optimizer", [](Plan* p) { p->update.optimizer = OptimizerKind::kSgd; }),
      Unsealed("another method", [](Plan* p) { p->update.methods["up"] = UpdateMethod::kSharded; }),
      Unsealed("another bucket", [](Plan* p) { p->update.bucket_ends = {"up"}; }),
      Unsealed("fewer bits", [](Plan* p) { p->precision = DataType::kBFloat16; }),
      Unsealed(
          "drained after each step", [](Plan* p) { p->update.steps_between_flushes = 1; },
          "two_versions"),
      Unsealed(
          "all is kept", [](Plan* p) { p->recomputed.clear(); }, "recomputed"),
      Unsealed("another name of the model", [](Plan* p) { p->model.name = "it"; }),
      Unsealed("a name of a call", [](Plan* p) { p->graph.set_name({7}, "it"); }),
      Unsealed("steps in another order", [](Plan* p) { std::swap(p->steps[1], p->steps[2]); }),
      Unsealed("another device",
               [](Plan* p) {
                 p->views[7].start = 3;
                 p->views[7].strides[0] = -1;
               }),
      Unsealed("no seal", [](Plan* p) { p->seal = 0; }),
      Unsealed("a seal of one", [](Plan* p) { p->seal = 1; }),
      {"seal", "its own", "data", [](PlanClaim* c) { c->plan.seal = SealOf(c->plan); }, "", true},
  };
}

}  // namespace isomer
