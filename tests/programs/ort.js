// ort.js MODEL N [PROFILE]: runs an ONNX model N times in ONNX Runtime; prints the latency of each in milliseconds on stderr.
// PROFILE: ONNX Runtime writes its own profile to a file of which this is the beginning of the name. NODE_PATH says where
// onnxruntime-node is. In the environment: THREADS (1), LEVEL of the graph's optimization (all; disabled, basic, extended).
const ort = require('onnxruntime-node')

const WIDE = {int64: BigInt64Array, int32: Int32Array, float32: Float32Array, bool: Uint8Array}

function tensor(input) {
    const shape = input.shape.map(d => typeof d === 'number' && d > 0 ? d : 1)
    const data = new WIDE[input.type](shape.reduce((a, b) => a * b, 1))
    if (input.type === 'float32')
        data.forEach((_, i) => { data[i] = Math.sin(i) })
    return new ort.Tensor(input.type, data, shape)
}

async function main(model, n, profile) {
    const options = {logSeverityLevel: 4, intraOpNumThreads: Number(process.env.THREADS || 1),
                     graphOptimizationLevel: process.env.LEVEL || 'all'}
    if (profile)
        Object.assign(options, {enableProfiling: true, profileFilePrefix: profile})
    const session = await ort.InferenceSession.create(model, options)
    const feeds = Object.fromEntries(session.inputMetadata.map(input => [input.name, tensor(input)]))
    for (let i = 0; i < n; i++) {
        const start = process.hrtime.bigint()
        await session.run(feeds)
        console.error((Number(process.hrtime.bigint() - start) / 1e6).toFixed(4))
    }
    if (profile)
        session.endProfiling()
}

main(process.argv[2], Number(process.argv[3]), process.argv[4])
