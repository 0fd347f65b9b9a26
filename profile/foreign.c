/* What other tools write that holds no timeline, or in a form that is not read: by what stands in the file, its name, and what to give instead. */
#include "profile/reader.h"

#include <string.h>

#define NSYS                                                                                                           \
    "record the program with nsys profile --trace=cuda,nvtx,cudnn,cublas and give what nsys export --type=sqlite "     \
    "writes"
#define TORCH    "give what torch.profiler's export_chrome_trace writes"
#define UNPACKED "unpack it and give what is in it"

/* FRONT: the file begins with it; ANYWHERE: it has that, " & " between several; ENDING: its name ends in that. */
typedef enum { FRONT, ANYWHERE, ENDING } place;

static const struct {
    place place;
    const char *text, *what, *instead;
} FORMS[] = {
    {ENDING, ".ncu-rep", "a report of Nsight Compute, which measures kernels one by one", NSYS},
    {ENDING, ".xplane.pb", "an XPlane file of TensorFlow's or JAX's profiler",
     "give the trace.json.gz that lies beside it; where none does, JAX writes one with create_perfetto_trace=True"},
    {ENDING, ".pftrace", "a Perfetto trace", "convert it: traceconv json FILE trace.json"},
    {ENDING, ".perfetto-trace", "a Perfetto trace", "convert it: traceconv json FILE trace.json"},
    {ENDING, ".qdstrm", "what Nsight Systems recorded and did not import",
     "import it with its QdstrmImporter, then export with nsys export --type=sqlite"},
    {FRONT, "[]", "an empty list of events",
     "record while the program works, on the thread that does: older versions of torch.profiler see no other"},
    {FRONT, "BZh", "compressed by bzip2", UNPACKED},
    {FRONT, "\3757zXZ", "compressed by xz", UNPACKED},
    {FRONT, "PK\x03\x04", "a zip archive", UNPACKED},
    {FRONT, "\xff\xfe", "text in UTF-16, as PowerShell writes it", "convert it: iconv -f UTF-16 -t UTF-8 FILE"},
    {FRONT, "\xfe\xff", "text in UTF-16", "convert it: iconv -f UTF-16 -t UTF-8 FILE"},
    {FRONT, "PERFILE2", "a recording of Linux' perf", "record calls of libraries with benanza profile"},
    {FRONT, "\x89HDF", "an HDF5 file", "of Nsight Systems, export with --type=sqlite"},
    {FRONT, "<", "a web page or XML", "give the trace that it shows"},
    {FRONT, "\x80", "a Python pickle, such as PyTorch's memory snapshot, which tells no times of operators", TORCH},
    {ANYWHERE, "ustar", "an archive of tar", UNPACKED},
    {ANYWHERE, "\"startComputeMs\"", "trtexec's times of whole inferences (--exportTimes)", NSYS},
    {ANYWHERE, "\"averageMs\" & \"percentage\"", "trtexec's means by layer (--exportProfile), which are no timeline",
     NSYS},
    {ANYWHERE, "\"Layers\" & \"Bindings\"", "trtexec's list of layers (--exportLayerInfo), which has no times", NSYS},
    {ANYWHERE, "[pytorch|profiler|execution_trace",
     "PyTorch's execution trace: operators and their order, without times", TORCH},
    {ANYWHERE, "\"rocprofiler-sdk-tool\"", "rocprofv3's JSON",
     "give the database that rocprofv3 --output-format rocpd writes"},
    {ANYWHERE, "TensorRT.trtexec", "what trtexec says, of means over whole inferences", NSYS},
    {ANYWHERE, "NCCL INFO", "a log of NCCL, which has no times", NSYS},
    {ANYWHERE, "\"Calls\",\"TotalDurationNs\"", "rocprof's table of means by name",
     "give the database that rocprofv3 --output-format rocpd writes"},
    {ANYWHERE, "Duration(us) & Task ID", "a table of Ascend's profiler",
     "give the trace_view.json that lies beside it"},
    {ANYWHERE, "llama_perf_context_print", "what llama.cpp says of itself, of means over a run", NSYS},
    {ANYWHERE, "speedscope.app", "a profile for speedscope, of call stacks", TORCH},
    {ANYWHERE, "\"device_metrics\" & \"calls\"", "TVM's report of means by function, which is no timeline", NSYS},
    {ANYWHERE, "{\"Type\":", "Nsight Systems' export as JSON lines", "export with nsys export --type=sqlite"},
    {ANYWHERE, "\"Metric Name\" & \"Metric Value\"", "Nsight Compute's table, which measures kernels one by one", NSYS},
    {ANYWHERE, "Total Time (ns)", "a table of nsys stats",
     "give the SQLite file that nsys stats made beside the report"},
    {ANYWHERE, "NVPROF is profiling", "nvprof's text", "give what nvprof --export-profile writes"},
    {ANYWHERE, "Self CPU", "PyTorch's table of means by operator", TORCH},
    {ANYWHERE, "Average Forward pass", "the log of caffe time, which has means by layer", NSYS},
    {ANYWHERE, "layerName;execStatus", "OpenVINO's table of means by layer",
     "set ONEDNN_VERBOSE=1 and give the log that the program then prints"},
    {ANYWHERE, "\"KernelName\" & \"BeginNs\"", "rocprof's table of kernels",
     "give the JSON that rocprof --hip-trace writes"},
    {ANYWHERE, "\"Kernel_Name\" & \"Start_Timestamp\"", "rocprofv3's table of kernels",
     "give the database that rocprofv3 --output-format rocpd writes"},
};

static bool fits(size_t form, const char *path, const char *head, size_t n)
{
    const char *text = FORMS[form].text;
    size_t m = strlen(text), length = strlen(path);
    if (FORMS[form].place == FRONT)
        return n >= m && !memcmp(head, text, m);
    if (FORMS[form].place == ENDING)
        return length > m && !strcmp(path + length - m, text);
    for (const char *and; (and = strstr(text, " & ")); text = and+3)
        if (!memmem(head, n, text, (size_t)(and-text)))
            return false;
    return bz_text_has(head, n, text);
}

int bz_foreign_fail(const char *path, const char *head, size_t n, bz_error *err)
{
    for (size_t i = 0; i < sizeof FORMS / sizeof *FORMS; i++)
        if (fits(i, path, head, n))
            return bz_fail(err, BZ_BAD_INPUT, "%s: is %s, and no recording that benanza reads: %s", path, FORMS[i].what,
                           FORMS[i].instead);
    return bz_fail(
        err, BZ_BAD_INPUT,
        "%s: is no recording that benanza reads: give an Nsight Systems SQLite export, a rocprofv3 database, "
        "a cuDNN, cuBLAS, oneDNN or MKL log, a PyTorch, ONNX Runtime, TensorFlow, JAX, Paddle or Ascend "
        "trace, or a file of benanza profile",
        path);
}
