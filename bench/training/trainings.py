"""The five trainings, and the plans under which each runs: tables that train.py reads."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Plan:
    name: str
    devices: int
    flags: str  # of isomer-optimize, besides the model, the machine and the optimizer
    communicator: str = "threads"


@dataclasses.dataclass(frozen=True)
class Training:
    name: str
    title: str
    about: str
    model: str  # {work} is the folder of data, plans and runs, {seed} one of `seeds`
    optimizer: str
    run: str  # flags of isomer-run under all plans
    plans: tuple
    reads: str = ""  # what data.py makes for it: text or clicks
    seeds: tuple = (1, 2, 3)
    pytorch: str = ""  # a network of pytorch.py, which exports it, and trains it, too

    @property
    def wants(self):
        return " --python=VENV/bin/python" if self.pytorch else ""


TEXT = "--data={work}/train.bin --eval_data={work}/test.bin"
CLICKS = " ".join(f"--data={name}={{work}}/{name}.npy --eval_data={name}={{work}}/{name}.test.npy"
                  for name in ["dense", "target"] + [f"table{t}_ids" for t in range(8)])
DATA_PARALLEL = "--plan=data_parallel --update=all_reduce"
ZERO_1 = "--plan=data_parallel --update=sharded"
ZERO_2 = "--plan=data_parallel --update=sharded_gradients"
ZERO_3 = "--plan=zero3"

DIGITS = Training(
    "digits", "Digits, a convolutional network",
    "Two convolutions and two dense layers on the 1,438 training rows of digits.csv, 20 epochs, momentum.", "models/data/digits_cnn.onnx", "momentum",
    "--data=models/data/digits.csv --epochs=20 --learning_rate=0.005",
    (Plan("found by the search", 1, ""),
     Plan("data parallel", 2, DATA_PARALLEL),
     Plan("data parallel", 8, DATA_PARALLEL, "mpi"),
     Plan("ZeRO 1", 4, ZERO_1, "tcp"),
     Plan("ZeRO 2", 2, ZERO_2, "mpi"),
     Plan("ZeRO 3", 4, ZERO_3),
     Plan("dense layers by tensor, convolutions by data", 2, "--plan=grid --tensor=2", "tcp"),
     Plan("pipeline 2", 2, "--plan=grid --pipeline=2 --micro_batch_size=16"),
     Plan("pipeline 4", 4, "--plan=grid --pipeline=4 --micro_batch_size=8", "mpi"),
     Plan("tensor 2 x pipeline 2 x data 2", 8, "--plan=grid --tensor=2 --pipeline=2 --micro_batch_size=8"),
     Plan("found by the search", 8, "", "tcp")))

LSTM = Training(
    "lstm", "Two LSTM layers on text",
    "Two layers of 128, unrolled over 32 bytes of text (data.py says which), Adam, clipped at 1.",
    "zoo:rnnlm?layers=2&steps=32&hidden=128&embedding=128&vocabulary=256&batch=16", "adam",
    TEXT + " --steps=300 --learning_rate=0.001 --clip_norm=1",
    (Plan("found by the search", 1, ""),
     Plan("data parallel", 2, DATA_PARALLEL, "tcp"),
     Plan("ZeRO 1", 4, ZERO_1),
     Plan("ZeRO 3", 8, ZERO_3),
     Plan("tensor 4", 4, "--plan=grid --tensor=4"),
     Plan("pipeline 4", 4, "--plan=grid --pipeline=4 --micro_batch_size=4"),
     Plan("tensor 2 x pipeline 2 x data 2", 8, "--plan=grid --tensor=2 --pipeline=2 --micro_batch_size=4")), reads="text")

GPT = Training(
    "gpt", "A GPT of 10 million parameters on text, beside PyTorch",
    "The module Gpt of pytorch.py (eight layers of 320), exported to ONNX with its initial weights, on sequences of 16 "
    "bytes of text (data.py says which) in their order: AdamW, warm-up, cosine, clipped at 1.",
    "{work}/gpt.seed{seed}.onnx", "adam",
    TEXT + " --steps=300 --learning_rate=0.0006 --weight_decay=0.1 --clip_norm=1"
    " --schedule=cosine --warmup_steps=30 --noshuffle",
    (Plan("found by the search", 1, ""),
     Plan("tensor 2 x pipeline 2 x data 2, all recomputed", 8,
          "--plan=grid --tensor=2 --pipeline=2 --micro_batch_size=1 --recompute=full --update=sharded"),
     Plan("found by the search", 8, ""),
     Plan("ZeRO 3", 4, ZERO_3),
     Plan("pipeline 4", 4, "--plan=grid --pipeline=4 --micro_batch_size=2"),
     Plan("sequence 2 x data 2", 4, "--plan=grid --context=2 --update=all_reduce"),
     Plan("data parallel", 2, DATA_PARALLEL, "tcp")), reads="text", pytorch="gpt")

DLRM = Training(
    "dlrm", "DLRM on a log of clicks",
    "Eight tables of 1,000 rows, a log of clicks that data.py draws from a hidden logistic model, Adagrad; "
    "the loss is the squared error of the probability (Brier score).",
    "zoo:dlrm?tables=8&rows=1000&features=16&dense=16&bottom_layers=2&bottom_hidden=64&top_layers=2"
    "&top_hidden=64&batch=128", "adagrad",
    CLICKS + " --epochs=1 --learning_rate=0.003",
    (Plan("found by the search", 1, ""),
     Plan("data parallel", 2, DATA_PARALLEL),
     Plan("ZeRO 1", 8, ZERO_1),
     Plan("ZeRO 3", 4, ZERO_3, "tcp"),
     Plan("tensor 4", 4, "--plan=grid --tensor=4", "mpi"),
     Plan("tables apart (Neo)", 4, "--plan=published"),
     Plan("tables apart (Neo)", 8, "--plan=published", "tcp"),
     Plan("pipeline 2", 2, "--plan=grid --pipeline=2 --micro_batch_size=32", "mpi"),
     Plan("found by the search", 8, "")), reads="clicks")

MOE = Training(
    "moe", "A mixture of experts on text",
    "Two layers of Mixtral's kind, eight experts each, of which a byte of text takes two, Adam, clipped at 1. "
    "An expert takes 1.25 times its even share of a sequence, and drops what exceeds it.",
    "zoo:mixtral?layers=2&hidden=64&heads=8&key_heads=8&experts=8&intermediate=128&vocabulary=256"
    "&seq=16&batch=8", "adam",
    TEXT + " --steps=300 --learning_rate=0.0005 --clip_norm=1",
    (Plan("found by the search", 1, ""),
     Plan("data parallel", 2, DATA_PARALLEL, "tcp"),
     Plan("ZeRO 1", 8, ZERO_1),
     Plan("ZeRO 3", 4, ZERO_3),
     Plan("experts 4", 4, "--plan=grid --expert=4", "tcp"),
     Plan("tensor 4", 4, "--plan=grid --tensor=4"),
     Plan("experts 4 x tensor 2", 8, "--plan=grid --expert=4 --tensor=2"),
     Plan("pipeline 2 x experts 2 x data 2", 8, "--plan=grid --pipeline=2 --expert=2 --micro_batch_size=1"),
     Plan("found by the search", 8, "", "tcp")), reads="text")

LSTM_PYTORCH = Training(
    "lstm_pytorch", "Two LSTM layers on text, beside PyTorch",
    "The module Lstm of pytorch.py (nn.LSTM), exported to ONNX with its initial weights, on the rows of the text in "
    "their order, Adam, warm-up, cosine and clipping at 1.",
    "{work}/lstm.seed{seed}.onnx", "adam",
    TEXT + " --steps=300 --learning_rate=0.001 --clip_norm=1 --schedule=cosine --warmup_steps=30 --noshuffle",
    (Plan("as it is", 1, "--plan=data_parallel"),
     Plan("found by the search", 2, "", "tcp"),
     Plan("ZeRO 3", 4, ZERO_3)),
    reads="text", seeds=(1,), pytorch="lstm")

TRAININGS = (DIGITS, LSTM, GPT, DLRM, MOE, LSTM_PYTORCH)
