"""What the test of commands (commands_test.py) leaves out, and what it has to bring along. Each line
is for a command that some document has, else the test fails.

Patterns are regular expressions, searched in the command."""

# Not here, and why. The programs, flags and files that they name are checked all the same.
NOT_RUN = (
    (r"\b(MODEL|PLAN|PRESET|RULES)\b", "has placeholders"),
    (r"^scripts/(quickstart|test|install_dependencies)\.sh", "installs and builds all of it"),
    (r"cmake --(preset|build|install)\b|\bcpack\b", "builds; ctest's `install` installs"),
    (r"^scripts/gpu_bundle\.sh", "builds"),
    (r"venv", "ctest's `python_install`, with a built module"),
    (r"^python3? |^/usr/bin/python3 ", "needs PyTorch or onnx"),
    (r"^scripts/check_(pytorch_export|jax_export|exports)\.sh", "needs what PyTorch exports"),
    (r"/tmp/(llama|gpt2)/model\.onnx", "needs what PyTorch exports"),
    (r"^torchrun ", "needs PyTorch"),
    (r"net_jax\.py --check", "needs JAX"),
    (r"/tmp/digits\.(npz|plan)|/tmp/dense\.npy", "needs what NumPy writes; ctest's TrainingFiles"),
    (r"^isomer-profile --show=F$", "of a MODEL"),
    (r"^srun ", "needs SLURM"),
    (r"--backend=cuda|^tar xf isomer-gpu", "needs a GPU"),
    (r"^mpirun -n 8 ", "needs 20 GB of memory"),
    (r"zoo:gpt_175b\?layers=6", "writes for the command that needs 20 GB"),
    (r"^chromium ", "ctest's `report_page_in_a_browser`"),
    (r"\| man -l", "needs man"),
    (r"^(time )?build/release/bench/|^bench/\w+\.sh", "bench/run.sh, by hand"),
    (r"\bbench/(soak|checkpoint_stall)\.py", "20,000 steps, or a billion parameters"),
    (r"^(time )?build/release/bin/", "bench/run.sh, by hand"),
    (r"^bench/training/train\.py\b|\$(WORK|FLAGS)|^WORK=", "bench/training/train.py runs it, in hours; ctest's `trainings`"),
    (r"^build/release/tests/", "ctest runs it"),
)

# Runs with --all, which takes an hour.
SLOW = (
    (r"^isomer-generate .*--max_ops=[34]", "1 to 3 minutes"),
    (r"^scripts/attack\.sh", "as long as it says"),
    (r"^isomer-verify rules rules/default\.rules", "a minute"),
    (r'^isomer-profile "zoo:encoder|--show=/tmp/encoder', "half a minute"),
    (r"^isomer-verify lemmas .*--exhaustive", "minutes"),
    (r"^isomer-verify mutate$|^isomer-verify mutate +#", "a minute"),
    (r"--out=F --(list_proposers|policy=)", "10 s each; README.md has searches like these"),
    (r"^isomer-run /tmp/gpt\.plan", "half a minute"),
    (r"zoo:gpt_175b --batch_size=1024|gpt\.plan --machine=dgx_h100", "half a minute each"),
)

# Runs with this added, but for --all.
QUICKER = (
    (r"\bisomer-profile .*--(devices=|communicator=)", "--seconds_per_kernel=0.002"),
    (r"^isomer-run /tmp/gpt_lossy\.plan .*--epochs=3", "--epochs=1"),  # the last counts
)

# Exit code 1: the answer is no.
ANSWERS_NO = (
    (r"^isomer-verify (unity|taso) ", "rules of the examples are false"),
)

# Flags in text that no program of ours has.
FLAGS_OF_OTHERS = (
    (r"^--(allow-run-as-root|enable-recovery|oversubscribe)$", "mpirun"),
    (r"^--max-restarts$", "torchrun"),
    (r"^--list-gpus$", "nvidia-smi"),
)

# What a document takes as given ("yours"), made by these commands in its folder.
ONNX = "protoc -I models/onnx models/onnx/onnx.proto --encode=isomer.onnx."
SMALL_PLAN = ("isomer-optimize 'zoo:mlp?layers=2&inputs=64&hidden=64&classes=16&batch=64'"
              " --machine=laptop_cpu --devices_per_node=2 --out=")
GIVEN = {
    "README.md": (
        "isomer-generate --ops=add,relu --max_ops=2 --out=my.rules",
        "protoc verifier/audit/foreign.proto --encode=isomer.proto.TasoRuleCollection"
        " <tests/data/audit/taso.textproto >graph_subst.pb",
        "cp tests/data/audit/unity.json graph_subst_3_v2.json",
        "mkdir test_data_set_0",
        ONNX + "ModelProto <tests/documents/net.textproto >net.onnx",
        ONNX + "TensorProto <tests/documents/input.textproto >test_data_set_0/input_0.pb",
        ONNX + "TensorProto <tests/documents/output.textproto >test_data_set_0/output_0.pb",
    ),
    "docs/auditing.md": (
        "protoc verifier/audit/foreign.proto --encode=isomer.proto.TasoRuleCollection"
        " <tests/data/audit/taso.textproto >graph_subst.pb",
        "cp tests/data/audit/unity.json graph_subst_3_v2.json",
    ),
    "docs/exports.md": ("cp models/data/bert_tiny.onnx net.onnx",),
    "docs/profiles.md": (
        SMALL_PLAN + "more.plan",
    ),
    "docs/running.md": (
        SMALL_PLAN + "two.plan",
    ),
}
