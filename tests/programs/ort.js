// ort.js MODEL N [PROFILE]: runs an ONNX model N times in ONNX Runtime; prints the latency of each in milliseconds on stderr.
// PROFILE: ONNX Runtime writes its own profile to a file of which this is the beginning of the name. NODE_PATH says where
// onnxruntime-node is. In the environment: THREADS (1), LEVEL of the graph's optimization (all; disabled, basic, extended),
// WITHOUT: optimizers that are left out, with ';' between; CLOCK=cpu: the processor's time instead of the clock's;
// NEIGHBOUR: behind each latency the milliseconds that copying within the first-level cache took around it, which is longer
// while somebody else works on the same core.
const ort = require('onnxruntime-node')

const WIDE = {int64: BigInt64Array, int32: Int32Array, float32: Float32Array, bool: Uint8Array}

function tensor(input) {
    const shape = input.shape.map(d => typeof d === 'number' && d > 0 ? d : 1)
    const data = new WIDE[input.type](shape.reduce((a, b) => a * b, 1))
    if (input.type === 'float32')
        data.forEach((_, i) => { data[i] = Math.sin(i) })
    return new ort.Tensor(input.type, data, shape)
}

function milliseconds(start) {
    return Number(process.hrtime.bigint() - start) / 1e6
}

const here = new Float32Array(4096), there = new Float32Array(4096)
function neighbour() {
    let least = Infinity
    for (let k = 0; k < 3; k++) {
        const start = process.hrtime.bigint()
        for (let i = 0; i < 512; i++)
            there.set(here)
        least = Math.min(least, milliseconds(start))
    }
    return least
}

async function main(model, n, profile) {
    const options = {logSeverityLevel: 4, intraOpNumThreads: Number(process.env.THREADS || 1),
                     graphOptimizationLevel: process.env.LEVEL || 'all'}
    if (profile)
        Object.assign(options, {enableProfiling: true, profileFilePrefix: profile})
    if (process.env.WITHOUT)
        options.extra = {optimization: {disable_specified_optimizers: process.env.WITHOUT}}
    const session = await ort.InferenceSession.create(model, options)
    const feeds = Object.fromEntries(session.inputMetadata.map(input => [input.name, tensor(input)]))
    const look = process.env.NEIGHBOUR ? neighbour : () => 0
    for (let i = 0; i < 100; i++) // until it is compiled
        look()
    let before = look()
    for (let i = 0; i < n; i++) {
        const start = process.hrtime.bigint(), used = process.cpuUsage()
        await session.run(feeds)
        const cpu = process.cpuUsage(used)
        const took = process.env.CLOCK === 'cpu' ? (cpu.user + cpu.system) / 1e3 : milliseconds(start), after = look()
        console.error(took.toFixed(4) + (after ? ' ' + Math.max(before, after).toFixed(4) : ''))
        before = after
    }
    if (profile)
        session.endProfiling()
}

main(process.argv[2], Number(process.argv[3]), process.argv[4])
