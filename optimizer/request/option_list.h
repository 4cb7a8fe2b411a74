// The options of a search: the one list that flags of isomer-optimize, keywords of the Python
// package and OptimizeRequest are made from. X(TYPE, NAME, DEFAULT, HELP).
#ifndef ISOMER_OPTIMIZER_REQUEST_OPTION_LIST_H_
#define ISOMER_OPTIMIZER_REQUEST_OPTION_LIST_H_

// clang-format off
// Of the machine (MachineRequest).
#define ISOMER_MACHINE_OPTIONS(X)                                                                  \
  X(int64_t, nodes, 0,                                                                             \
    "number of nodes; 0: as the machine file says")                                                \
  X(int64_t, devices_per_node, 0,                                                                  \
    "devices of each node; 0: as the machine file says")                                           \
  X(double, device_memory_gib, 0,                                                                  \
    "memory of every device; 0: as the machine file says")

// Of the plan and the search for it (OptimizeRequest).
#define ISOMER_SEARCH_OPTIONS(X)                                                                   \
  X(std::string, mode, "training",                                                                 \
    "training or inference")                                                                       \
  X(bool, loss_alone, false,                                                                       \
    "in training, a step gives back its loss and no other output; so it does without the option "  \
    "where others take more than an eighth of a device, as the logits of a large batch")           \
  X(std::string, loss, "auto",                                                                     \
    "in training: cross_entropy (of logits and labels), mse, none (the output is a "               \
    "loss), or auto, which prints what it takes; of the first output, or KIND:OUTPUT")             \
  X(std::vector<std::string>, carry, {},                                                           \
    "in inference, OUTPUT:INPUT of a model whose step leaves something to the next, such as keys "  \
    "and values: what OUTPUT is after a step, INPUT is in the next, and stays on the devices. "    \
    "Without, outputs present.* and inputs past.* of one type are paired; none: none are")         \
  X(std::string, precision, "float32",                                                             \
    "what the plan computes in: float32, bfloat16, float16 or fp8, which is bfloat16 but for "     \
    "products with weights; what is trained, the masters of weights, stays float32")               \
  X(std::string, fp8_scaling, "tensor",                                                            \
    "of --precision=fp8, what has a scale of its own: tensor, an operand of a product; row, each " \
    "of its rows; or block, 128 neighbours of a row")                                              \
  X(std::vector<std::string>, fp8_keep, {"ends"},                                                  \
    "of --precision=fp8, the weights whose products keep bfloat16, separated by commas: names, "   \
    "or ends, those of the first and the last products; none: no weights")                         \
  X(std::string, fp8_errors, "",                                                                   \
    "of --precision=fp8, a file of isomer-profile --fp8_errors: more weights keep bfloat16, so "   \
    "that --fp8_error is not exceeded")                                                            \
  X(double, fp8_error, 0,                                                                          \
    "how far rounding may take the gradient by all weights (in inference all outputs), of its "    \
    "norm, as isomer-run --check measures it")                                                     \
  X(std::string, attention, "flash",                                                               \
    "flash, fused kernels that keep no scores; or unfused, which writes and reads "                \
    "them")                                                                                        \
  X(double, expert_imbalance, 0,                                                                   \
    "of mixtures: the plan has room in each expert for so many times its even share of tokens, "   \
    "and a run that would need more ends; 0: the model's own room, and tokens that exceed it are " \
    "dropped")                                                                                     \
  X(std::string, expert_loads, "",                                                                 \
    "a file of isomer-run --expert_loads, whose largest imbalance is --expert_imbalance")          \
  X(std::string, gradient_precision, "float32",                                                    \
    "in what gradients of weights are summed over devices: float32; bfloat16, or what "            \
    "--precision says, half the bytes and a rounding of each share; or auto, the faster one")      \
  X(std::string, state_precision, "float32",                                                       \
    "in what the optimizer's states are kept: float32; or bfloat16, half the bytes, to which "     \
    "updates round them")                                                                          \
  X(std::string, optimizer, "sgd",                                                                 \
    "of weights, in training: sgd, momentum, adam, lion, adagrad, lamb or muon")                   \
  X(bool, clip_norm, false,                                                                        \
    "gradients will be scaled by their global norm (isomer-run --clip_norm): the plan updates "    \
    "weights once all are known, and what the norm takes is in its time")                          \
  X(bool, average, false,                                                                          \
    "a running average of the weights will be kept (isomer-run --average_decay): the plan makes "  \
    "room for it")                                                                                 \
  X(std::string, update, "auto",                                                                   \
    "how copies of weights are kept equal: all_reduce, sharded (ZeRO 1), "                         \
    "sharded_gradients (2), sharded_weights (3) or owner; auto: as is fastest, or "                \
    "fits")                                                                                        \
  X(int64_t, bucket_bytes, -1,                                                                     \
    "gradients are synchronised together up to so many bytes; 0: each by itself; -1: "             \
    "25 MiB, or more where that is faster")                                                        \
  X(std::string, search, "hierarchical",                                                           \
    "hierarchical; enumeration, the same but for trying all mappings; egraph, by "                 \
    "equality saturation; algebra, on one device of the machine; sequential, algebra "             \
    "before parallelism; mcmc, FlexFlow's walk; or exhaustive, which proves the "                  \
    "optimum of small networks")                                                                   \
  X(std::string, constraints, "",                                                                  \
    "a file of what the plan must keep: splits of tensors, devices of operators; of "              \
    "the step stages, micro-batches, updates, recomputation")                                      \
  X(std::string, plan, "",                                                                         \
    "a baseline instead of a search: data_parallel, zero3, megatron, pipeline or "                 \
    "published; or grid, the parallel configuration of --tensor, --context, --expert "             \
    "and --pipeline")                                                                              \
  X(bool, sequence_parallel, true,                                                                 \
    "of --plan=grid: what lies between the products that --tensor splits is split in "             \
    "the sequence; false: each of its devices computes all of it")                                 \
  X(int64_t, tensor, 1,                                                                            \
    "of --plan=grid: devices, next to each other, that share out products with "                   \
    "weights, attention by heads, and the sequence in between")                                    \
  X(int64_t, context, 1,                                                                           \
    "of --plan=grid: devices that share out the sequence")                                         \
  X(std::string, context_exchange, "auto",                                                         \
    "of --context, what attention exchanges: all_gather, keys and values; all_to_all, the "        \
    "sequence for heads (Ulysses); auto, as is faster")                                            \
  X(std::string, context_order, "auto",                                                            \
    "of --context, the order of the sequence that is split: contiguous; striped, so that causal "  \
    "attention is as much work on all devices (Striped Attention); auto, striped where it can be") \
  X(int64_t, expert, 1,                                                                            \
    "of --plan=grid: data-parallel devices that share out the experts of a mixture")               \
  X(std::string, pipeline, "1",                                                                    \
    "of --plan=grid: stages of equal work. 4x2: four stages with two chunks of the "               \
    "model each (interleaved 1F1B)")                                                               \
  X(std::string, schedule, "1f1b",                                                                 \
    "of --plan=grid, with --pipeline: 1f1b; zb_h1, gradients of weights apart from the "           \
    "others, to fill bubbles; zb_h2, with twice as many micro-batches in flight; zb_v, with "      \
    "two chunks a stage, placed in a V; or auto, as is fastest and fits")                          \
  X(int64_t, micro_batch_size, 0,                                                                  \
    "of --plan=grid: samples of a micro-batch on a device; 0: of pipelines 1, else a "             \
    "step is one micro-batch")                                                                     \
  X(std::string, recompute, "none",                                                                \
    "of --plan=grid, what the backward pass computes again: none, selective (scores "              \
    "of unfused attention, what was gathered, activation functions and norms) or full "            \
    "(all but the borders of segments)")                                                           \
  X(std::string, offload, "none",                                                                  \
    "activations that lie in the host's memory until the backward pass: none; or auto, where "     \
    "that takes less time than to compute them again, or nothing else fits (machines that say "    \
    "host_gb_per_s)")                                                                              \
  X(std::string, compare, "",                                                                      \
    "a file with the configuration that you run, which is a baseline of the search: "              \
    "the command line of Megatron-LM, or the settings of DeepSpeed (JSON) or "                     \
    "torchtitan (TOML)")                                                                           \
  X(int32_t, steps_between_flushes, 1,                                                             \
    "how often pipelines are drained; more than 1: weights of two versions "                       \
    "(PipeDream-2BW), gradients are a step late, which is another training")                       \
  X(bool, whole_machine, false,                                                                    \
    "no plan for a part of the machine, nor pipelines; single calls may still leave "              \
    "devices idle")                                                                                \
  X(std::vector<std::string>, without, {},                                                         \
    "proposers of plans that are not asked (--list_proposers), separated by commas")               \
  X(std::string, policy, "",                                                                       \
    "thresholds of the search, NAME=VALUE,.. (--list_policy): they trade search time "             \
    "for the step")                                                                                \
  X(int, bound_cuts, 0,                                                                            \
    "cuts of the space of plans, for a tighter lower bound on their steps; 0: none, "              \
    "and no bound for models of more than 400 operators")                                          \
  X(std::string, rules, "",                                                                        \
    "rules files, separated by commas; 'default', alone if nothing is said: those of Isomer")      \
  X(std::string, profile, "",                                                                      \
    "measured times of kernels; none: the machine's roofline")                                     \
  X(bool, profile_of_another_device, false,                                                        \
    "take --profile though it was measured on another device than the machine has")                \
  X(int64_t, budget, 0,                                                                            \
    "how many candidates of the substitution search to map, or proposals of "                      \
    "--search=mcmc, or prefixes of --search=exhaustive; 0: 300, 1000000, 2000000")                 \
  X(double, alpha, 1.05,                                                                           \
    "how much slower than the best a candidate may be to be expanded")                             \
  X(int, threads, 0,                                                                               \
    "that predict plans; 0: all cores. Does not change the plan")                                  \
  X(double, time_limit, 0,                                                                         \
    "seconds after which the search ends with the best plan so far, as on Ctrl-C; 0: "             \
    "none")                                                                                        \
  X(bool, split, true,                                                                             \
    "cut the model into pieces, which are searched one by one")                                    \
  X(bool, cache, true,                                                                             \
    "search equal pieces once, and keep what is found for later runs")                             \
  X(std::string, cache_dir, "",                                                                    \
    "where it is kept; the default is $XDG_CACHE_HOME/isomer/searches, or below "                  \
    "~/.cache")                                                                                    \
  X(uint64_t, seed, 1,                                                                             \
    "of --search=mcmc, and of steps that look equally good to others")
// clang-format on

#endif  // ISOMER_OPTIMIZER_REQUEST_OPTION_LIST_H_
