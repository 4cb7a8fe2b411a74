#!/usr/bin/env python3
"""Exports one network of each of many families, for planning.

    python3 models/export/export_families.py FOLDER [NETWORK...]

Two layers, where a family has layers, of width 512 with 256 tokens, or whole networks of images of
224 x 224; parameters as they are initialised. Each file is FOLDER/NETWORK.onnx, by the dynamo
exporter; nothing is downloaded. bench/rule_use.sh says which rules their plans use.

Needs torch, torchvision, transformers, timm, diffusers, onnx and onnxscript (tried: torch 2.15,
transformers 5.24, timm 1.0.31, diffusers 0.42).
"""
import argparse
import contextlib
import io
import pathlib
import sys
import warnings

import diffusers
import timm
import torch
import torchvision
import transformers

BATCH, TOKENS, VOCABULARY, LAYERS = 16, 256, 4096, 2
WIDTH, HEADS, KEY_HEADS, HIDDEN = 512, 8, 2, 2048
HEAD = WIDTH // HEADS

IMAGES = {"image_size": 224, "patch_size": 16}
ENDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
BLOCKS = {"hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS}
LAYERED = {**BLOCKS, "intermediate_size": HIDDEN}
LANGUAGE = {**BLOCKS, "vocab_size": VOCABULARY}
ENCODER = {**LAYERED, "vocab_size": VOCABULARY, "max_position_embeddings": TOKENS}
GROUPED = {**ENCODER, **ENDS, "num_key_value_heads": KEY_HEADS}
GPT2 = {"vocab_size": VOCABULARY, "n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS}
TEXT = {**LAYERED, **ENDS, "vocab_size": VOCABULARY, "max_position_embeddings": 128}
PAIRED = {"d_model": WIDTH, "vocab_size": VOCABULARY, **ENDS,
          **{f"{side}_{of}": value for side in ("encoder", "decoder")
             for of, value in (("layers", LAYERS), ("attention_heads", HEADS), ("ffn_dim", HIDDEN))}}

# Of transformers: the class, what its configuration is made with.
DECODERS = {
    "bloom": ("BloomForCausalLM", dict(vocab_size=VOCABULARY, hidden_size=WIDTH, n_layer=LAYERS,
                                       n_head=HEADS)),
    "cohere": ("CohereForCausalLM", GROUPED),
    "falcon_alibi": ("FalconForCausalLM", dict(**LANGUAGE, alibi=True, num_kv_heads=KEY_HEADS,
                                               new_decoder_architecture=True)),
    "gptj": ("GPTJForCausalLM", dict(**GPT2, n_positions=TOKENS, rotary_dim=HEAD // 2)),
    "mamba2": ("Mamba2ForCausalLM", dict(vocab_size=VOCABULARY, hidden_size=WIDTH,
                                         num_hidden_layers=LAYERS, num_heads=2 * HEADS,
                                         head_dim=HEAD, state_size=8, n_groups=1, chunk_size=64,
                                         **ENDS)),
    "opt": ("OPTForCausalLM", dict(**LANGUAGE, ffn_dim=HIDDEN, word_embed_proj_dim=WIDTH,
                                   max_position_embeddings=TOKENS, **ENDS)),
    "phi3": ("Phi3ForCausalLM", GROUPED),
}
ENCODERS = {
    "albert": ("AlbertModel", dict(**ENCODER, embedding_size=WIDTH // 4)),
    "deberta_v2": ("DebertaV2ForMaskedLM", dict(**ENCODER, relative_attention=True,
                                                position_buckets=TOKENS // 2, share_att_key=True,
                                                norm_rel_ebd="layer_norm",
                                                pos_att_type=["p2c", "c2p"])),
    "electra": ("ElectraForSequenceClassification", dict(**ENCODER, embedding_size=WIDTH // 4)),
}
VISION = {
    "dinov2": ("Dinov2Model", dict(**BLOCKS, **IMAGES)),
    "segformer": ("SegformerForSemanticSegmentation", dict(
        num_encoder_blocks=3, depths=[1, 1, 1], sr_ratios=[4, 2, 1], patch_sizes=[7, 3, 3],
        strides=[4, 2, 2], num_attention_heads=[1, 2, 4], mlp_ratios=[4, 4, 4],
        hidden_sizes=[WIDTH // 4, WIDTH // 2, WIDTH], decoder_hidden_size=WIDTH)),
}
TORCHVISION = ("densenet121", "mobilenet_v3_large", "resnet18", "shufflenet_v2_x1_0")
TIMM = ("levit_128s", "poolformer_s12", "pvt_v2_b0", "xcit_tiny_12_p16_224")


class Called(torch.nn.Module):
    """The first tensor of what `function` gives of the network and its inputs."""

    def __init__(self, network, function=None):
        super().__init__()
        self.network = network
        self.function = function or (lambda network, *inputs: network(*inputs))

    def forward(self, *inputs):
        output = self.function(self.network, *inputs)
        while not torch.is_tensor(output):
            output = next(iter(output.values() if isinstance(output, dict) else output))
        return output


def hugging_face(name, **options):
    """The network of a class of transformers; `options` make its configuration."""
    cls = getattr(transformers, name)
    return cls(cls.config_class(**options))


def ids(tokens=TOKENS):
    return torch.randint(3, VOCABULARY, (BATCH, tokens))


def images(batch=BATCH):
    return torch.randn(batch, 3, 224, 224)


def logits(network, tokens):
    return network(input_ids=tokens, use_cache=False).logits


def translated(network, source, target):
    return network(source, decoder_input_ids=target, use_cache=False)


def transformer_networks():
    """By name: what makes the network, what makes its inputs."""
    found = {}
    for name, (cls, options) in DECODERS.items():
        found[name] = (lambda cls=cls, options=options: Called(hugging_face(cls, **options), logits),
                       lambda: (ids(),))
    for name, (cls, options) in ENCODERS.items():
        lengths = torch.randint(TOKENS // 2, TOKENS + 1, (BATCH, 1))
        mask = (torch.arange(TOKENS)[None] < lengths).long()
        found[name] = (lambda cls=cls, options=options: Called(hugging_face(cls, **options)),
                       lambda mask=mask: (ids(), mask))
    for name, (cls, options) in VISION.items():
        found[name] = (lambda cls=cls, options=options: Called(hugging_face(cls, **options)),
                       lambda: (images(),))
    vision = dict(**LAYERED, **IMAGES)
    found["bart"] = (
        lambda: Called(hugging_face("BartForConditionalGeneration", **PAIRED,
                                    max_position_embeddings=TOKENS), translated),
        lambda: (ids(), ids()))
    found["whisper"] = (
        lambda: Called(hugging_face("WhisperForConditionalGeneration", **PAIRED, num_mel_bins=80,
                                    max_source_positions=512, max_target_positions=TOKENS,
                                    decoder_start_token_id=1), translated),
        lambda: (torch.randn(BATCH, 80, 1024), ids(128)))
    found["wav2vec2"] = (
        lambda: Called(hugging_face("Wav2Vec2ForCTC", **LAYERED, vocab_size=VOCABULARY,
                                    conv_dim=[WIDTH // 2] * 3, conv_kernel=[10, 3, 3],
                                    conv_stride=[5, 4, 4], num_conv_pos_embeddings=16,
                                    num_conv_pos_embedding_groups=4)),
        lambda: (torch.randn(BATCH, 16000),))
    found["clip"] = (
        lambda: Called(hugging_face("CLIPModel", text_config=TEXT, vision_config=vision,
                                    projection_dim=WIDTH),
                       lambda network, text, image: network(
                           input_ids=text, pixel_values=image).logits_per_image),
        lambda: (ids(128), images()))
    found["blip"] = (
        lambda: Called(hugging_face("BlipForConditionalGeneration", vision_config=vision,
                                    text_config=dict(**TEXT, encoder_hidden_size=WIDTH)),
                       lambda network, text, image: network(
                           pixel_values=image, input_ids=text).logits),
        lambda: (ids(128), images()))
    return found


def diffusion_networks():
    size, steps = 4, torch.tensor([3])
    latents = lambda channels=4, side=32: torch.randn(size, channels, side, side)
    heads = {"num_attention_heads": HEADS, "attention_head_dim": HEAD}
    patches = dict(**heads, in_channels=4, num_layers=2, sample_size=16, patch_size=2)
    blocks = {"block_out_channels": (128, 256), "norm_num_groups": 8}
    return {
        "unet2d_condition": (
            lambda: Called(diffusers.UNet2DConditionModel(
                sample_size=32, in_channels=4, out_channels=4, layers_per_block=1, **blocks,
                down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
                up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"), cross_attention_dim=WIDTH,
                attention_head_dim=8)),
            lambda: (latents(), steps, torch.randn(size, 77, WIDTH))),
        "dit": (
            lambda: Called(diffusers.DiTTransformer2DModel(
                **patches, out_channels=8, num_embeds_ada_norm=10)),
            lambda: (latents(side=16), torch.full((size,), 3), torch.full((size,), 1))),
        "sd3": (
            lambda: Called(diffusers.SD3Transformer2DModel(
                **patches, out_channels=4, joint_attention_dim=WIDTH, caption_projection_dim=WIDTH,
                pooled_projection_dim=WIDTH, pos_embed_max_size=16)),
            lambda: (latents(side=16), torch.randn(size, 77, WIDTH), torch.randn(size, WIDTH),
                     torch.full((size,), 3))),
        "flux": (
            lambda: Called(
                diffusers.FluxTransformer2DModel(
                    patch_size=1, in_channels=16, num_layers=1, num_single_layers=2, **heads,
                    joint_attention_dim=WIDTH, pooled_projection_dim=WIDTH, guidance_embeds=False,
                    axes_dims_rope=(HEAD // 4, HEAD // 4, HEAD // 2)),
                lambda network, x, text, pooled, step: network(
                    hidden_states=x, encoder_hidden_states=text, pooled_projections=pooled,
                    timestep=step, img_ids=torch.zeros(x.shape[1], 3),
                    txt_ids=torch.zeros(text.shape[1], 3))),
            lambda: (torch.randn(size, 256, 16), torch.randn(size, 77, WIDTH),
                     torch.randn(size, WIDTH), torch.full((size,), 0.5))),
        "vae": (
            lambda: Called(
                diffusers.AutoencoderKL(
                    **blocks, down_block_types=("DownEncoderBlock2D",) * 2,
                    up_block_types=("UpDecoderBlock2D",) * 2, latent_channels=4, sample_size=32),
                lambda network, x: network.decode(network.encode(x).latent_dist.mode()).sample),
            lambda: (latents(channels=3),)),
    }


def image_networks():
    found = {}
    for name in TORCHVISION:
        found[name] = (lambda name=name: torchvision.models.get_model(name, weights=None),
                       lambda: (images(),))
    for name in TIMM:
        found[name] = (lambda name=name: timm.create_model(name, pretrained=False, num_classes=16),
                       lambda: (images(),))
    found["r3d_18"] = (
        lambda: torchvision.models.get_model("r3d_18", weights=None, num_classes=10),
        lambda: (torch.randn(4, 3, 16, 112, 112),))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("networks", nargs="*", metavar="NETWORK")
    arguments = parser.parse_args()
    known = {**transformer_networks(), **diffusion_networks(), **image_networks()}
    for name in arguments.networks:
        if name not in known:
            sys.exit(f"export_families.py: '{name}': there are {', '.join(known)}")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    warnings.filterwarnings("ignore")
    for name in arguments.networks or known:
        make, make_inputs = known[name]
        torch.manual_seed(0)
        inputs = make_inputs()
        with contextlib.redirect_stdout(io.StringIO()):
            torch.onnx.export(make().eval(), inputs, str(arguments.folder / f"{name}.onnx"),
                              input_names=[f"input_{i}" for i in range(len(inputs))],
                              output_names=["output"], dynamo=True, external_data=False)
        print(name, flush=True)


if __name__ == "__main__":
    main()
