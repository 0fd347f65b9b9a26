#!/usr/bin/python3
"""attributes.py BENANZA [MODEL...]: equal key = same layer, so what an attribute changes must be in the key.

Takes the attributes of the standard's operators from the ONNX package's schemas, sets each one anew in the package's own test models, and
asks for the layers' keys. One of its values must give another key or another result, unless OF_NO_WORK says why it may not. An
attribute that is set to its default says what the default says: the same key."""
import concurrent.futures
import glob
import json
import os
import subprocess
import sys
import tempfile

try:
    import onnx
    from onnx import AttributeProto, helper
except ImportError:
    print("skipped: no onnx here")
    sys.exit(77)

benanza, *models = sys.argv[1:]
models = models or sorted(glob.glob("/usr/share/libonnx-testdata/data/node/*/model.onnx"))
if not models:
    print("skipped: no test models here")
    sys.exit(77)
in_keys = set()  # attributes of which that is known already
# Attributes that may change without the key, and why. Those with a question mark are of later versions of the package alone.
OF_NO_WORK = {
    "a number that the same operations compute with": """Adagrad.decay_factor Adagrad.epsilon Adagrad.norm_coefficient Adam.alpha Adam.beta
        Adam.epsilon Adam.norm_coefficient Adam.norm_coefficient_post BatchNormalization.epsilon BatchNormalization.momentum Dropout.ratio
        InstanceNormalization.epsilon LRN.alpha LRN.beta LRN.bias LayerNormalization.epsilon Momentum.alpha Momentum.beta
        Momentum.norm_coefficient RoiAlign.spatial_scale TfIdfVectorizer.ngram_counts TfIdfVectorizer.pool_int64s ?Attention.scale ?Binarizer.threshold
        ?GroupNormalization.epsilon ?RMSNormalization.epsilon""",
    "chance": "Bernoulli.seed Dropout.seed",
    "which of equal results": "ArgMax.select_last_index ArgMin.select_last_index MaxPool.storage_order Unique.sorted",
    "which of two rules for each element, in one pass": "IsInf.detect_negative IsInf.detect_positive Mod.fmod ?Cast.saturate ?CastLike.saturate ?QuantizeLinear.saturate",
    "how exact it is within": "?Attention.softmax_precision ?GroupNormalization.stash_type ?QuantizeLinear.precision ?RMSNormalization.stash_type",
    "which of the products is wanted": "?Attention.qk_matmul_output_mode",
    "where it is written": "?TensorScatter.axis ?TensorScatter.mode",
    "what text is compared with": "StringNormalizer.case_change_action StringNormalizer.is_case_sensitive",
    "a content": """Constant.value_float Constant.value_int ?LabelEncoder.default_float ?LabelEncoder.default_int64 ?LabelEncoder.values_int64s
        ?TreeEnsemble.aggregate_function ?TreeEnsemble.leaf_targetids ?TreeEnsemble.nodes_falseleafs ?TreeEnsemble.nodes_falsenodeids
        ?TreeEnsemble.nodes_featureids ?TreeEnsemble.nodes_trueleafs ?TreeEnsemble.nodes_truenodeids ?TreeEnsemble.post_transform ?TreeEnsemble.tree_roots""",
    "said by the results, too": "?DeformConv.pads ?LpPool.ceil_mode ?Split.num_outputs ?StringSplit.maxsplit",
    "said by the weights, too": "?DeformConv.kernel_shape Conv.kernel_shape ConvTranspose.kernel_shape GRU.hidden_size LSTM.hidden_size RNN.hidden_size",
    "of empty tensors": "Reshape.allowzero",
    "as good as pads that say the same": "QLinearConv.auto_pad",
}
OF_NO_WORK = {name for names in OF_NO_WORK.values() for name in names.split()}
LATER = {name[1:] for name in OF_NO_WORK if name[0] == "?"}
OF_NO_WORK = {name for name in OF_NO_WORK if name[0] != "?"}
WORDS = {"auto_pad": ["SAME_UPPER", "SAME_LOWER", "VALID"], "direction": ["reverse", "bidirectional", "LEFT", "RIGHT"], "equation": []}
WORDS["mode"] = ["DCR", "CRD", "bilinear", "bicubic", "nearest", "linear", "cubic", "reflect", "edge", "constant", "avg", "max", "nesterov", "standard", "TF", "IDF"]
WORDS["reduction"] = ["none", "sum", "mean", "add", "mul"]
WORDS["padding_mode"] = ["zeros", "border", "reflection"]
WORDS["coordinate_transformation_mode"] = ["half_pixel", "asymmetric", "align_corners", "output_half_pixel"]
WORDS["nearest_mode"] = ["floor", "ceil"]
WORDS["case_change_action"] = ["LOWER", "UPPER", "NONE"]


def others(name, kind, value):
    """What the attribute could be besides."""
    if kind == AttributeProto.INT:
        return [1 - value] if value in (0, 1) and name not in ("axis", "to", "dtype", "group", "output_datatype", "stash_type") else [v for v in (1, 0, 2, -1, 6, 10) if v != value]
    if kind == AttributeProto.FLOAT:
        return [(value or 0) * 0.5 + 0.25]
    if kind == AttributeProto.STRING:
        return [w for w in WORDS.get(name, []) if w != value]
    if kind == AttributeProto.INTS and value:
        return [[v + 1 for v in value], list(value)[::-1], list(value)[:-1] + [value[-1] - 1]]
    if kind == AttributeProto.FLOATS and value:
        return [[v * 0.5 + 0.25 for v in value]]
    if kind == AttributeProto.STRINGS and name == "activations":
        return [["Relu"] * len(value or [1]), ["Affine"] * 3]
    return []


def value_of(attribute):
    v = helper.get_attribute_value(attribute)
    return v.decode() if isinstance(v, bytes) else v


def layer_of(model):
    """Key and result of the first layer; None: it is refused."""
    with tempfile.NamedTemporaryFile(suffix=".onnx") as f:
        f.write(model.SerializeToString())
        f.flush()
        r = subprocess.run([benanza, "layers", "--json", f.name], capture_output=True, text=True)
    assert r.returncode in (0, 3), (model.graph.name, r)
    if r.returncode:
        return None
    return [(l["key"], [(o["dtype"], o["shape"]) for o in l["outputs"]]) for l in json.loads(r.stdout)[0]["layers"]]


def with_attribute(model, name, value):
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    for o in changed.graph.output:  # whose type the attribute may change
        o.ClearField("type")
    node = changed.graph.node[0]
    for a in [a for a in node.attribute if a.name == name]:
        node.attribute.remove(a)
    if value is not None:
        node.attribute.append(helper.make_attribute(name, value))
    return changed


def judge(path):
    """Attributes of which a value was tried, and what a default changed."""
    model = onnx.load(path)
    tried, wrong = set(), []
    if len(model.graph.node) != 1:
        return tried, wrong
    node = model.graph.node[0]
    opset = {o.domain: o.version for o in model.opset_import}
    if not onnx.defs.has(node.op_type, node.domain):
        return tried, wrong
    schema = onnx.defs.get_schema(node.op_type, opset[node.domain], node.domain)
    as_it_is = layer_of(with_attribute(model, "", None))
    if as_it_is is None:
        return tried, wrong
    for name, a in schema.attributes.items():
        here = [value_of(x) for x in node.attribute if x.name == name]
        default = value_of(a.default_value) if a.default_value.name and name != "activations" else None  # as many as there are directions
        value = here[0] if here else default
        kind = int(a.type)
        if here and default is not None and here[0] == default or not here and default is not None:
            if layer_of(with_attribute(model, name, None if here else default)) != as_it_is:
                wrong.append(f"{path}: {name}={default} is the default, and has another key than none")
        attribute = f"{node.op_type}.{name}"
        for v in () if attribute in in_keys else others(name, kind, value):
            changed = layer_of(with_attribute(model, name, v))
            if changed is not None:  # some fit nothing but what they are: a group, a kernel's shape
                tried.add(attribute)
                if changed != as_it_is:  # one value of one model is enough
                    in_keys.add(attribute)
                    break
    return tried, wrong


told, wrong = set(), []
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    for tried, complaints in pool.map(judge, models):
        wrong += complaints
        told |= tried
silent = told - in_keys
wrong += [f"{name}: no value of it gives another key" for name in sorted(silent - OF_NO_WORK - LATER)]
wrong += [f"{name}: it is in the key, or was not tried: it needs no reason here" for name in sorted(OF_NO_WORK - silent)]
print("\n".join(wrong))
print(f"{len(told)} attributes in {len(models)} models: {len(told) - len(silent)} are in keys; {len(wrong)} complaints")
sys.exit(bool(wrong))
