"""Are config.json and params.json read as their models were built, traps and mistakes included?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.errors import InputError
from commsim.training.configs.huggingface import describe
from commsim.training.configs.keys import LARGEST_FILE, Config
from commsim.training.configs.well_known import model
from commsim.training.layers.experts import Experts
from commsim.training.layers.feed_forward import FeedForward
from commsim.training.layers.span import Span
from commsim.training.parameters import parameters

if TYPE_CHECKING:
    from pathlib import Path

    from commsim.training.layers.attention import Attention
    from commsim.training.model import Model

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_attention_heads": 16,
    "num_hidden_layers": 8,
    "num_key_value_heads": 4,
    "vocab_size": 32000,
    "tie_word_embeddings": False,
}
MIXTRAL = LLAMA | {"model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2}
DEEPSEEK = LLAMA | {
    "model_type": "deepseek_v3",
    "kv_lora_rank": 128,
    "q_lora_rank": 256,
    "qk_nope_head_dim": 64,
    "qk_rope_head_dim": 32,
    "v_head_dim": 64,
    "n_routed_experts": 16,
    "n_shared_experts": 2,
    "num_experts_per_tok": 4,
    "moe_intermediate_size": 512,
    "first_k_dense_replace": 2,
    "moe_layer_freq": 1,
}


def told(values: dict[str, Any], **change: Any) -> Model:  # noqa: ANN401 - whatever a config may hold
    return describe(Config(values | change, "config.json"), "small")


def attention(made: Model, kind: str) -> Attention:
    found = made.block(kind).attention
    assert found
    return found


def experts(made: Model, kind: str = "full-moe") -> Experts:
    found = made.block(kind).experts
    assert found
    return found


@pytest.mark.data
def test_every_real_config_reads(data: Path) -> None:
    files = sorted((data / "formats" / "models").glob("*.json"))
    assert len(files) == 21
    for file in files:
        made = model(file)
        assert made.name == file.stem
        assert len(made.layers) > 20


# Traps


def test_a_head_is_as_wide_as_said_else_as_hidden_by_heads() -> None:
    assert attention(told(LLAMA), "full-dense").head_dim == 64
    assert attention(told(LLAMA, head_dim=128), "full-dense").head_dim == 128
    assert attention(told(LLAMA, head_dim=None), "full-dense").head_dim == 64
    with pytest.raises(InputError, match="a divisor of hidden_size 1024"):
        told(LLAMA, num_attention_heads=15, num_key_value_heads=5)


@pytest.mark.parametrize("key", ["num_local_experts", "n_routed_experts", "num_experts"])
def test_experts_have_three_names(key: str) -> None:
    made = told(LLAMA | {key: 8, "num_experts_per_tok": 2})
    assert experts(made) == Experts(8, 2, 4096)


def test_intermediate_size_is_the_experts_unless_they_have_their_own() -> None:
    assert experts(told(MIXTRAL)).width == 4096
    assert experts(told(MIXTRAL, moe_intermediate_size=512)).width == 512


def test_dense_layers_first_and_shared_experts() -> None:
    made = told(DEEPSEEK)
    assert made.layers == ("latent-dense",) * 2 + ("latent-moe",) * 6
    assert made.block("latent-dense").feed_forward == FeedForward(4096)
    assert experts(made, "latent-moe") == Experts(16, 4, 512, shared=1024)


@pytest.mark.parametrize(
    ("change", "dense"),
    [
        ({"moe_layer_freq": 2, "first_k_dense_replace": 0}, [1, 3, 5, 7]),
        ({"moe_layer_freq": [0, 0, 1, 1, 1, 1, 1, 1], "first_k_dense_replace": 0}, [0, 1]),
        ({"first_k_dense_replace": 0, "decoder_sparse_step": 2}, [0, 2, 4, 6]),
        ({"first_k_dense_replace": 0, "mlp_only_layers": [0, 7]}, [0, 7]),
        ({"first_k_dense_replace": 0, "interleave_moe_layer_step": 4}, [0, 1, 2, 4, 5, 6]),
        ({"n_routed_experts": 0}, list(range(8))),
    ],
)
def test_which_layers_are_dense(change: dict[str, Any], dense: list[int]) -> None:
    layers = told(DEEPSEEK, **change).layers
    assert [number for number, kind in enumerate(layers) if kind == "latent-dense"] == dense


def test_values_nested_in_a_text_config() -> None:
    nested = {"model_type": "a_vision_model", "text_config": LLAMA, "vision_config": {"depth": 27}}
    made = told(nested, tie_word_embeddings=False)
    assert made.layers == told(LLAMA).layers
    assert "the vision tower is left out" in made.assumptions


def test_windows() -> None:
    assert told(LLAMA, sliding_window=512).layers == ("sliding-dense",) * 8
    assert attention(told(LLAMA, sliding_window=512), "sliding-dense").span == Span(most=512)
    assert told(LLAMA, sliding_window=512, use_sliding_window=False).layers == ("full-dense",) * 8
    half = told(LLAMA, sliding_window=512, use_sliding_window=True, max_window_layers=6)
    assert half.layers == ("full-dense",) * 6 + ("sliding-dense",) * 2
    listed = told(LLAMA, sliding_window=512, layer_types=["sliding_attention", "full_attention"] * 4)
    assert listed.layers == ("sliding-dense", "full-dense") * 4
    with pytest.raises(InputError, match="one for each of 8 layers"):
        told(LLAMA, layer_types=["full_attention"])
    with pytest.raises(InputError, match="a kind of attention that is known"):
        told(LLAMA, layer_types=["magic_attention"] * 8)


def test_chunks_of_llama_4() -> None:
    made = told(LLAMA, model_type="llama4_text", attention_chunk_size=256)
    assert made.layers == (("chunked-dense",) * 3 + ("full-dense",)) * 2


def test_prediction_modules() -> None:
    made = told(DEEPSEEK, num_nextn_predict_layers=2)
    assert (made.mtp, made.mtp_depth) == (("latent-moe",), 2)
    assert len(made.layers) == 8
    assert told(DEEPSEEK, num_nextn_predict_layers=2, use_mtp=False).mtp_depth == 0


def test_hybrid_patterns() -> None:
    hybrid = LLAMA | {
        "model_type": "nemotron_h",
        "hybrid_override_pattern": "M-M*M-M*",
        "mamba_num_heads": 16,
        "mamba_head_dim": 64,
        "ssm_state_size": 128,
        "n_groups": 8,
        "conv_kernel": 4,
        "time_step_limit": [0.0, float("inf")],
    }
    assert told(hybrid).layers == ("mamba", "dense", "mamba", "full") * 2
    with pytest.raises(InputError, match="8 letters out of M"):
        told(hybrid, hybrid_override_pattern="M-M*")
    with pytest.raises(InputError, match="8 letters out of M"):
        told(hybrid, hybrid_override_pattern="M-M*M-MX")


def test_gpt_2_by_its_own_names() -> None:
    """124,439,808 parameters, as the weights on its page have."""
    gpt2 = {"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024, "vocab_size": 50257}
    made = told(gpt2, resid_pdrop=0.1, attn_pdrop=0.1)
    assert parameters(made).total == 124_439_808
    assert made.tied_embeddings
    assert made.blocks[0].dropout
    assert attention(made, "full-dense").dropout


def test_what_a_config_does_not_say_is_an_assumption() -> None:
    unsaid = {key: value for key, value in LLAMA.items() if key != "tie_word_embeddings"}
    assert any("tied embeddings are not said" in line for line in told(unsaid).assumptions)
    unknown = told(LLAMA, model_type="brand_new", hidden_act="relu2")
    assert any("'brand_new' is not known" in line for line in unknown.assumptions)
    assert unknown.block("full-dense").feed_forward == FeedForward(4096, gated=False)
    assert told(LLAMA).assumptions == ()


# Mistakes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_hidden_layers": None}, "needs the key 'num_hidden_layers'"),
        ({"num_hidden_layers": 10**12}, "from 1 to 4096"),
        ({"num_hidden_layers": 0}, "from 1 to 4096"),
        ({"num_hidden_layers": "8"}, "a whole number"),
        ({"num_hidden_layers": True}, "a whole number"),
        ({"hidden_size": float("nan")}, "a whole number"),
        ({"hidden_size": -1024}, "a whole number"),
        ({"hidden_size": 10**30}, "a whole number"),
        ({"vocab_size": 0}, "a whole number"),
        ({"num_key_value_heads": 3}, "a divisor of the 16 heads"),
        ({"model_type": 7}, "text belongs here"),
        ({"model_type": "bert"}, "a decoder language model"),
        ({"is_encoder_decoder": True}, "a decoder language model"),
        ({"model_type": "jamba", "attn_layer_period": 8}, "its layers are not known"),
        ({"text_config": []}, "a table belongs here"),
        ({"layer_types": "full"}, "a list of texts"),
        ({"tie_word_embeddings": "no"}, "true or false"),
    ],
)
def test_configs_that_cannot_be(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        told(LLAMA, **change)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1, 2]", "a table that describes a model"),
        ('{"hidden_size": 1024', "as JSON"),
        ("", "as JSON"),
        ("null", "a table that describes a model"),
        ("\x00\x01", "as JSON"),
        ("[" * 100_000, "as JSON"),
        ('{"hidden_size": ' + "9" * 5000 + "}", "as JSON"),
        ("{}", "needs the key"),
    ],
)
def test_files_that_are_no_model(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "config.json"
    file.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        model(tmp_path)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(InputError, match="as JSON"):
        model(tmp_path)


def test_a_file_too_large_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    with file.open("wb") as sparse:
        sparse.truncate(LARGEST_FILE + 1)
    with pytest.raises(InputError, match="4000000 bytes at most"):
        model(file)


def test_a_folder_without_a_config(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"config\.json or params\.json"):
        model(tmp_path)


def test_the_file_is_named_where_a_layer_refuses(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(MIXTRAL | {"num_experts_per_tok": 9}))
    with pytest.raises(InputError, match=r"config\.json: Experts: top_k: 9; at most the 8 experts"):
        model(file)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from([LLAMA, MIXTRAL, DEEPSEEK]), st.data())
def test_any_value_under_any_key_reads_or_is_refused_in_one_line(base: dict[str, Any], data: st.DataObject) -> None:
    keys = [*base, "text_config", "head_dim", "sliding_window", "layer_types", "hybrid_override_pattern", "index_topk"]
    changed = base | {data.draw(st.sampled_from(keys)): data.draw(JSON)}
    try:
        made = told(changed)
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017 - both ends are fine
    else:
        assert parameters(made).total > 0


# params.json


def written(folder: Path, values: dict[str, Any]) -> Model:
    (folder / "params.json").write_text(json.dumps(values))
    return model(folder)


LLAMA_405B = {
    "dim": 16384,
    "ffn_dim_multiplier": 1.2,
    "multiple_of": 4096,
    "n_heads": 128,
    "n_kv_heads": 8,
    "n_layers": 126,
    "norm_eps": 1e-05,
    "vocab_size": 128256,
}


def test_llama_405b_as_first_published(tmp_path: Path) -> None:
    made = written(tmp_path, LLAMA_405B)
    assert parameters(made) == parameters(model("llama3.1-405b"))
    assert made.layers == model("llama3.1-405b").layers


def test_llama_2_as_first_published(tmp_path: Path) -> None:
    llama2 = {"dim": 4096, "multiple_of": 256, "n_heads": 32, "n_layers": 32}
    assert parameters(written(tmp_path, llama2 | {"vocab_size": 32000})) == parameters(model("llama2-7b"))
    with pytest.raises(InputError, match="the size of the tokenizer's vocabulary"):
        written(tmp_path, llama2 | {"vocab_size": -1})


def test_mixtral_as_first_published(tmp_path: Path) -> None:
    mixtral = {"dim": 4096, "n_layers": 32, "n_heads": 32, "n_kv_heads": 8, "hidden_dim": 14336, "vocab_size": 32000}
    made = written(tmp_path, mixtral | {"head_dim": 128, "moe": {"num_experts": 8, "num_experts_per_tok": 2}})
    assert parameters(made).total == parameters(model("mixtral-8x7b")).total


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ffn_dim_multiplier": -1.0}, "a number above 0"),
        ({"ffn_dim_multiplier": float("nan")}, "a number above 0"),
        ({"ffn_dim_multiplier": "1.2"}, "a number above 0"),
        ({"n_layers": 10**9}, "from 1 to 4096"),
        ({"moe": 8}, "a table belongs here"),
        ({"moe_args": {"num_experts": 16}}, r"give its Hugging Face config\.json"),
    ],
)
def test_params_that_cannot_be(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        written(tmp_path, LLAMA_405B | change)
