// ort_outputs.js MODEL INPUTS OUTPUTS: runs an ONNX model once in ONNX Runtime on the bytes of INPUTS (its inputs one behind the
// other) and writes its outputs' bytes, in the model's order. NODE_PATH says where onnxruntime-node is.
const fs = require('fs')
const ort = require('onnxruntime-node')

const TYPES = {int64: BigInt64Array, int32: Int32Array, float32: Float32Array, bool: Uint8Array}

async function main(model, inputs, outputs) {
    const session = await ort.InferenceSession.create(model, {logSeverityLevel: 4})
    const bytes = fs.readFileSync(inputs)
    let at = 0
    const feeds = {}
    for (const input of session.inputMetadata) {
        const shape = input.shape.map(d => typeof d === 'number' && d > 0 ? d : 1)
        const type = TYPES[input.type]
        const size = shape.reduce((a, b) => a * b, 1) * type.BYTES_PER_ELEMENT
        feeds[input.name] = new ort.Tensor(input.type, new type(bytes.buffer.slice(bytes.byteOffset + at,
            bytes.byteOffset + at + size)), shape)
        at += size
    }
    const results = await session.run(feeds)
    fs.writeFileSync(outputs, Buffer.concat(session.outputNames.map(name => {
        const data = results[name].data
        return Buffer.from(data.buffer, data.byteOffset, data.byteLength)
    })))
}

main(process.argv[2], process.argv[3], process.argv[4])
