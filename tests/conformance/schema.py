#!/usr/bin/python3
"""schema.py PROTOC_C ONNX_PROTO: holds our schema against the one of the ONNX package. Every field that its messages have is in
ours, with the same number, type and label; what is otherwise, or is in ours only, is listed here by name."""
import subprocess
import sys
import tempfile

try:
    from onnx import onnx_ml_pb2
except ImportError:
    print("python3-onnx is not installed: skipped")
    sys.exit(77)
from google.protobuf import descriptor_pb2

OURS_ONLY = {"NodeProto.overload", "FunctionProto.overload", "FunctionProto.attribute_proto", "FunctionProto.value_info",
             "TensorProto.left_out"}
# Newer packages have them: properties that nobody computes with pass through as unknown fields, and types are read as numbers.
NOT_OURS = {f"{m}.metadata_props" for m in ("ValueInfoProto", "NodeProto", "GraphProto", "TensorProto", "FunctionProto")} | {
    f"TensorProto.DataType.{t}" for t in ("FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "UINT4", "INT4",
                                          "FLOAT4E2M1", "FLOAT8E8M0", "UINT2", "INT2")}
# How a model is spread over devices, likewise.
SPREAD = {"NodeProto.device_configurations", "ModelProto.configuration"}
SPREAD_MESSAGES = ("IntIntListEntryProto", "NodeDeviceConfigurationProto", "ShardingSpecProto", "ShardedDimProto", "SimpleShardedDimProto",
                   "DeviceConfigurationProto")
PACKED = {"NodeProto.attribute"}    # bytes: an AttributeProto that is unpacked later


def fields(messages, outer=""):
    """MESSAGE.FIELD -> (number, label, type, type's name, packed, oneof), and the same of values of enums."""
    found = {}
    for m in messages:
        name = outer + m.name
        for f in m.field:
            oneof = m.oneof_decl[f.oneof_index].name if f.HasField("oneof_index") else None
            found[f"{name}.{f.name}"] = (f.number, f.label, f.type, f.type_name, f.options.packed, oneof)
        for e in m.enum_type:
            found.update({f"{name}.{e.name}.{v.name}": v.number for v in e.value})
        found.update(fields(m.nested_type, name + "."))
    return found


def main():
    with tempfile.NamedTemporaryFile() as out:
        folder, _, file = sys.argv[2].rpartition("/")
        subprocess.run([sys.argv[1], f"--descriptor_set_out={out.name}", f"--proto_path={folder}", file], check=True)
        ours = descriptor_pb2.FileDescriptorSet.FromString(out.read()).file[0]
    theirs = descriptor_pb2.FileDescriptorProto()
    onnx_ml_pb2.DESCRIPTOR.CopyToProto(theirs)
    ours, theirs = fields(ours.message_type), fields(theirs.message_type)
    wrong = [f"{name}: {ours.get(name, 'missing')}, but the package has {theirs[name]}" for name in theirs
             if name not in PACKED | NOT_OURS | SPREAD and name.split(".")[0] not in SPREAD_MESSAGES
             and ours.get(name) != theirs[name]]
    for name in PACKED:    # on the wire these are the same
        number, label, kind = ours[name][:3]
        if (number, label) != theirs[name][:2] or kind != descriptor_pb2.FieldDescriptorProto.TYPE_BYTES:
            wrong.append(f"{name}: {ours[name]}")
    if set(ours) - set(theirs) - OURS_ONLY:    # a newer package may have what is listed
        wrong.append(f"not listed: {set(ours) - set(theirs) - OURS_ONLY}")
    print(*wrong, sep="\n")
    print(f"{len(theirs)} fields and values of the package, {len(ours)} of ours")
    sys.exit(1 if wrong or len(theirs) < 100 else 0)


main()
