"""A tiny model with random weights of every family that is wanted, and inputs for each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

PADDING = 1
TEXT: dict[str, Any] = {
    "vocab_size": 60, "pad_token_id": PADDING, "bos_token_id": 0, "eos_token_id": 2,
}  # fmt: skip
WIDE: dict[str, Any] = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
    "max_position_embeddings": 64, **TEXT,
}  # fmt: skip
GROUPED = {**WIDE, "num_key_value_heads": 2, "head_dim": 8}
GROUPS = {**WIDE, "num_key_value_heads": 2}
ENCODER = {name: WIDE[name] for name in ("hidden_size", "num_hidden_layers", "num_attention_heads",
                                         "intermediate_size")}  # fmt: skip
IMAGE: dict[str, Any] = {**ENCODER, "image_size": 16, "patch_size": 4}
WAVES: dict[str, Any] = {
    **ENCODER, "conv_dim": (8, 8), "conv_kernel": (4, 3), "conv_stride": (3, 2),
    "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 4,
    "num_conv_pos_embedding_groups": 2,
}  # fmt: skip
# experts, latent keys and values, and an index of four tokens for each row
LATENT: dict[str, Any] = {
    **WIDE, "num_key_value_heads": 4, "head_dim": 8, "q_lora_rank": 16, "kv_lora_rank": 16,
    "qk_rope_head_dim": 4, "qk_nope_head_dim": 8, "v_head_dim": 8, "moe_intermediate_size": 16,
    "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1,
    "index_topk": 4, "index_head_dim": 8, "index_n_heads": 2,
}  # fmt: skip
ALTERNATING = ["sliding_attention", "full_attention"]
EXPERTS: dict[str, Any] = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
                           "shared_expert_intermediate_size": 16}  # fmt: skip
DELTA: dict[str, Any] = {
    **GROUPED, "linear_num_key_heads": 2, "linear_num_value_heads": 2, "linear_key_head_dim": 8,
    "linear_value_head_dim": 8, "layer_types": ["linear_attention", "full_attention"],
}  # fmt: skip
MAMBA: dict[str, Any] = {
    "mamba_n_heads": 4, "mamba_d_head": 16, "mamba_d_state": 8, "mamba_expand": 2,
    "mamba_n_groups": 1, "mamba_chunk_size": 8,
}  # fmt: skip
TWO: dict[str, Any] = {
    "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, **TEXT,
}  # fmt: skip
# scores of contents, and of contents and positions in both directions
DISENTANGLED: dict[str, Any] = {
    "relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_biased_input": False,
    "max_relative_positions": 6,
}  # fmt: skip


@dataclass(frozen=True)
class Family:
    """Class of a family's models, sizes, and what is peculiar to it."""

    model: str
    sizes: dict[str, Any] = field(default_factory=dict)
    parts: tuple[str | None, ...] = (None,)
    inputs: str = "text"


FAMILIES = {
    "BERT": Family("BertModel", WIDE),
    "RoBERTa": Family("RobertaModel", WIDE),
    "XLM-R": Family("XLMRobertaModel", WIDE),
    "DistilBERT": Family("DistilBertModel", {"dim": 32, "n_layers": 2, "n_heads": 4,
                                             "hidden_dim": 48, "max_position_embeddings": 64,
                                             **TEXT}),
    "ELECTRA": Family("ElectraModel", {**WIDE, "embedding_size": 16}),
    "ModernBERT": Family("ModernBertModel", {**WIDE, "local_attention": 8, "cls_token_id": 0,
                                             "global_attn_every_n_layers": 2, "sep_token_id": 2}),
    "ALBERT": Family("AlbertModel", {**WIDE, "embedding_size": 16}),
    "GPT-2": Family("GPT2Model", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64,
                                  **TEXT}),
    "GPT-NeoX (Pythia)": Family("GPTNeoXModel", WIDE),
    "OPT": Family("OPTModel", {**WIDE, "ffn_dim": 48, "word_embed_proj_dim": 32}),
    "Phi": Family("PhiModel", WIDE),
    "Phi-3": Family("Phi3Model", GROUPS),
    "Llama": Family("LlamaModel", GROUPED),
    "Mistral": Family("MistralModel", {**GROUPED, "sliding_window": 6}),
    "Mixtral": Family("MixtralModel", {**GROUPED, "num_local_experts": 3}),
    "Qwen2": Family("Qwen2Model", {**GROUPED, "use_sliding_window": True, "sliding_window": 6,
                                   "max_window_layers": 1}),
    "Qwen3": Family("Qwen3Model", GROUPED),
    "Gemma": Family("GemmaModel", GROUPED),
    "Gemma 2": Family("Gemma2Model", {**GROUPED, "sliding_window": 6, "query_pre_attn_scalar": 8,
                                      "attn_logit_softcapping": 1.0}),
    "Gemma 3": Family("Gemma3TextModel", {**GROUPED, "sliding_window": 6,
                                          "query_pre_attn_scalar": 8}),
    "OLMo-2": Family("Olmo2Model", GROUPS),
    "SmolLM3": Family("SmolLM3Model", {**GROUPED, "no_rope_layer_interval": 2}),
    "Granite": Family("GraniteModel", {**GROUPS, "residual_multiplier": 0.5,
                                       "embedding_multiplier": 3.0, "attention_multiplier": 0.2}),
    "StarCoder2": Family("Starcoder2Model", GROUPS),
    "GPT-OSS": Family("GptOssModel", {**GROUPED, "num_local_experts": 3, "num_experts_per_tok": 2,
                                      "sliding_window": 6}),
    "DeepSeek-V3.2": Family("DeepseekV32Model", {**LATENT, "first_k_dense_replace": 1}),
    "GLM-MoE-DSA": Family("GlmMoeDsaModel", {**LATENT, "first_k_dense_replace": 1}),
    "Llama 4": Family("Llama4TextModel", {
        **GROUPED, "intermediate_size_mlp": 48, "num_local_experts": 3, "num_experts_per_tok": 1,
        "attention_chunk_size": 6, "no_rope_layers": [1, 0], "interleave_moe_layer_step": 1}),
    "Gemma 4": Family("Gemma4TextModel", {
        **GROUPED, "layer_types": ["sliding_attention", "full_attention"], "sliding_window": 6,
        "num_kv_shared_layers": 0, "global_head_dim": 8, "hidden_size_per_layer_input": 8,
        "vocab_size_per_layer_input": 60}),
    "Doge": Family("DogeModel", GROUPED),
    "RoCBert": Family("RoCBertModel", {
        **WIDE, "pronunciation_vocab_size": 70, "shape_vocab_size": 70, "shape_embed_dim": 16,
        "pronunciation_embed_dim": 16}),
    "MiniMax": Family("MiniMaxModel", {
        **GROUPED, "num_hidden_layers": 3, "num_local_experts": 3, "block_size": 8,
        "layer_types": ["linear_attention", "full_attention", "linear_attention"],
        "full_attn_alpha_factor": 1.5, "linear_attn_beta_factor": 0.7, "mlp_alpha_factor": 0.8}),
    "Qwen3-Next": Family("Qwen3NextModel", {**DELTA, **EXPERTS}),
    "Qwen3.5": Family("Qwen3_5TextModel", DELTA),
    "AFMoE": Family("AfmoeModel", {**GROUPED, **EXPERTS, "num_dense_layers": 1,
                                   "sliding_window": 6, "layer_types": ALTERNATING}),
    "Laguna": Family("LagunaModel", {**GROUPED, **EXPERTS, "sliding_window": 6,
                                     "layer_types": ALTERNATING}),
    "Granite SWA": Family("GraniteSWAModel", {**GROUPED, "sliding_window": 6,
                                              "layer_types": ALTERNATING}),
    "Jamba": Family("JambaModel", {
        **GROUPED, "num_hidden_layers": 4, "attn_layer_period": 4, "attn_layer_offset": 2,
        "num_experts": 3, "num_experts_per_tok": 2, "expert_layer_period": 2,
        "expert_layer_offset": 1, "use_mamba_kernels": False, "mamba_dt_rank": 4,
        "mamba_d_state": 8}),
    "LFM2": Family("Lfm2Model", {
        **GROUPED, "num_hidden_layers": 3, "layer_types": ["conv", "full_attention", "conv"],
        "conv_L_cache": 3, "block_auto_adjust_ff_dim": False}),
    "Nemotron-H": Family("NemotronHModel", {
        **GROUPED, "num_hidden_layers": 4, "use_mamba_kernels": False, "mamba_num_heads": 4,
        "layers_block_type": ["mamba", "moe", "attention", "mlp"], "mamba_head_dim": 16,
        "ssm_state_size": 8, "n_groups": 1, "chunk_size": 8, "n_routed_experts": 4,
        "num_experts_per_tok": 2, "moe_intermediate_size": 16, "n_group": 1, "topk_group": 1,
        "moe_shared_expert_intermediate_size": 16}),
    "Granite 4": Family("GraniteMoeHybridModel", {
        **GROUPED, **MAMBA, "num_hidden_layers": 3, "layer_types": ["mamba", "attention", "mamba"],
        "num_local_experts": 3, "num_experts_per_tok": 2, "shared_intermediate_size": 32,
        "residual_multiplier": 0.5}),
    "Falcon-H1": Family("FalconH1Model", {**GROUPED, **MAMBA, "mamba_d_ssm": 64,
                                          "ssm_out_multiplier": 0.5}),
    "OLMo hybrid": Family("OlmoHybridModel", {
        **WIDE, "num_hidden_layers": 3, "linear_num_key_heads": 2, "linear_num_value_heads": 2,
        "linear_key_head_dim": 8, "linear_value_head_dim": 8, "num_key_value_heads": 4,
        "layer_types": ["linear_attention", "full_attention", "linear_attention"]}),
    "LongCat-Flash": Family("LongcatFlashModel", {
        **LATENT, "head_dim": 4, "num_hidden_layers": 4, "num_layers": 2, "ffn_hidden_size": 48,
        "expert_ffn_hidden_size": 16, "moe_topk": 2, "zero_expert_num": 1}),
    "T5": Family("T5Model", {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4,
                             "decoder_start_token_id": 0, **TEXT},
                 ("encoder", "decoder", "cross"), "two texts"),
    "BART": Family("BartModel", {**TWO, "max_position_embeddings": 64},
                   ("encoder", "decoder", "cross"), "two texts"),
    "ViT": Family("ViTModel", IMAGE, inputs="image"),
    "CLIP, text": Family("CLIPTextModel", WIDE),
    "CLIP, images": Family("CLIPVisionModel", IMAGE, inputs="image"),
    "DINOv3": Family("DINOv3ViTModel", IMAGE, inputs="image"),
    "wav2vec 2.0": Family("Wav2Vec2Model", WAVES, inputs="waves"),
    "AST": Family("ASTModel", {**ENCODER, "patch_size": 4, "max_length": 24, "num_mel_bins": 8,
                               "time_stride": 4, "frequency_stride": 4}, inputs="spectrogram"),
    "Whisper": Family("WhisperModel", {**TWO, "num_mel_bins": 8, "max_source_positions": 16,
                                       "max_target_positions": 20, "decoder_start_token_id": 0},
                      ("encoder", "decoder", "cross"), "sound"),
    # attention in code of their own
    "GPT-Neo": Family("GPTNeoModel", {
        "hidden_size": 32, "num_layers": 2, "num_heads": 4, "window_size": 6,
        "attention_types": [[["global", "local"], 1]], "max_position_embeddings": 64, **TEXT}),
    "GPT-J": Family("GPTJModel", {"n_embd": 32, "n_layer": 2, "n_head": 4, "rotary_dim": 4,
                                  "n_positions": 64, **TEXT}),
    "CodeGen": Family("CodeGenModel", {"n_embd": 32, "n_layer": 2, "n_head": 4, "rotary_dim": 4,
                                       "n_positions": 64, "n_ctx": 64, **TEXT}),
    "BLOOM": Family("BloomModel", {"hidden_size": 32, "n_layer": 2, "n_head": 4, **TEXT}),
    "MPT": Family("MptModel", {"d_model": 32, "n_heads": 4, "n_layers": 2, "expansion_ratio": 2,
                               "max_seq_len": 64, **TEXT}),
    "Falcon": Family("FalconModel", {**WIDE, "bias": True}),
    "Falcon, alibi": Family("FalconModel", {**WIDE, "bias": True, "alibi": True,
                                            "multi_query": False, "parallel_attn": False}),
    "Falcon, groups": Family("FalconModel", {**WIDE, "bias": True, "num_kv_heads": 2,
                                             "new_decoder_architecture": True}),
    "DeBERTa": Family("DebertaModel", {**WIDE, **DISENTANGLED}),
    "DeBERTa-v2": Family("DebertaV2Model", {**WIDE, **DISENTANGLED}),
    "MPNet": Family("MPNetModel", WIDE),
}  # fmt: skip
# those whose attention doesn't go through the interface
OWN_CODE = ("GPT-Neo", "GPT-J", "CodeGen", "BLOOM", "MPT", "Falcon", "Falcon, alibi",
            "Falcon, groups", "DeBERTa", "DeBERTa-v2", "MPNet")  # fmt: skip
# without attention that averages values, or with another kind of it
HIDDEN = {
    "FNet": Family("FNetModel", WIDE),
    "XLNet": Family("XLNetModel", {"d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 48,
                                   **TEXT}),
    "Longformer": Family("LongformerModel", {**WIDE, "attention_window": [4, 4]}),
}  # fmt: skip

# captured by no means, and why
REFUSED = {
    "BitNet": (Family("BitNetModel", GROUPED), "a norm before W_O"),
    "DiffLlama": (Family("DiffLlamaModel", GROUPED), "differential attention"),
}


def build(name: str, dtype: torch.dtype, *, head: str = "", **changes: Any) -> Any:
    """A model whose every weight, biases and gains too, is random.

    `head` is the end of the name of a class with a head, such as ForCausalLM.
    """
    import transformers

    family = _family(name)
    kind: Any = getattr(transformers, family.model)
    if head:
        # some bodies of text alone have a head of the family's name
        base = family.model.removesuffix("Model")
        kind = next(k for b in (base, base.removesuffix("Text"))
                    if (k := getattr(transformers, b + head, None)))  # fmt: skip
    torch.manual_seed(0)
    config = getattr(transformers, family.model).config_class(**{**family.sizes, **changes})
    # experts are multiplied together in lower precisions alone
    config._experts_implementation = "eager"
    config._attn_implementation = "eager"
    model: nn.Module = kind(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
        for module in model.modules():
            scalar = getattr(module, "layer_scalar", None)
            if isinstance(scalar, Tensor):
                # a buffer, of ones before training
                scalar.fill_(0.7)
    return model.to(dtype).eval()


def _family(name: str) -> Family:
    refused = {name: family for name, (family, _) in REFUSED.items()}
    return {**FAMILIES, **HIDDEN, **refused}[name]


def inputs_of(
    name: str, dtype: torch.dtype, part: str | None = None, *, n: int = 9
) -> dict[str, Tensor]:
    """Inputs of two sentences, images or sounds."""
    g = torch.Generator().manual_seed(1)
    tokens = torch.stack([torch.randperm(57, generator=g)[:n] + 3 for _ in range(2)])
    kind = _family(name).inputs
    given = {
        "image": lambda: {"pixel_values": torch.randn(2, 3, 16, 16, generator=g, dtype=dtype)},
        "sound": lambda: {"input_features": torch.randn(2, 8, 32, generator=g, dtype=dtype)},
        "waves": lambda: {"input_values": torch.randn(2, 104, generator=g, dtype=dtype)},
        "spectrogram": lambda: {"input_values": torch.randn(2, 24, 8, generator=g, dtype=dtype)},
    }.get(kind, lambda: {"input_ids": tokens})()
    if part in ("decoder", "cross"):
        given["decoder_input_ids"] = tokens[:, :7].flip(1)
    return given
