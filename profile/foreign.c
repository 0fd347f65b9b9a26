/* What other tools write that holds no timeline, or in a form that is not read: by what stands in the file, its name, and what to give instead. */
#include "profile/reader.h"

#include <string.h>

#define NSYS                                                                                                           \
    "record the program with nsys profile --trace=cuda,nvtx,cudnn,cublas and give what nsys export --type=sqlite "     \
    "writes"
#define TORCH    "give what torch.profiler's export_chrome_trace writes"
#define UNPACKED "unpack it and give what is in it"

static const struct {
    bool front;       /* the file begins with it */
    const char *text; /* " & " between those that must all be there */
    const char *what, *instead;
} FORMS[] = {
    {true, "BZh", "compressed by bzip2", UNPACKED},
    {true,
     "\xfd"
     "7zXZ",
     "compressed by xz", UNPACKED},
    {true, "PK\x03\x04", "a zip archive", UNPACKED},
    {true, "\xff\xfe", "text in UTF-16, as PowerShell writes it", "convert it: iconv -f UTF-16 -t UTF-8 FILE"},
    {true, "\xfe\xff", "text in UTF-16", "convert it: iconv -f UTF-16 -t UTF-8 FILE"},
    {true, "PERFILE2", "a recording of Linux' perf", "record calls of libraries with benanza profile"},
    {true, "\x89HDF", "an HDF5 file", "of Nsight Systems, export with --type=sqlite"},
    {true, "<", "a web page or XML", "give the trace that it shows"},
    {true, "\x80", "a Python pickle, such as PyTorch's memory snapshot, which tells no times of operators", TORCH},
    {false, "\"startComputeMs\"", "trtexec's times of whole inferences (--exportTimes)", NSYS},
    {false, "\"averageMs\" & \"percentage\"", "trtexec's means by layer (--exportProfile), which are no timeline",
     NSYS},
    {false, "\"Layers\" & \"Bindings\"", "trtexec's list of layers (--exportLayerInfo), which has no times", NSYS},
    {false, "[pytorch|profiler|execution_trace", "PyTorch's execution trace: operators and their order, without times",
     TORCH},
    {false, "\"rocprofiler-sdk-tool\"", "rocprofv3's JSON",
     "torch.profiler records AMD's GPUs, too; or convert rocprofv3 --output-format pftrace by traceconv json"},
    {false, "speedscope.app", "a profile for speedscope, of call stacks", TORCH},
    {false, "\"device_metrics\" & \"calls\"", "TVM's report of means by function, which is no timeline", NSYS},
    {false, "{\"Type\":", "Nsight Systems' export as JSON lines", "export with nsys export --type=sqlite"},
    {false, "\"Metric Name\" & \"Metric Value\"", "Nsight Compute's table, which measures kernels one by one", NSYS},
    {false, "Total Time (ns)", "a table of nsys stats", "give the SQLite file that nsys stats made beside the report"},
    {false, "NVPROF is profiling", "nvprof's text", "give what nvprof --export-profile writes"},
    {false, "Self CPU", "PyTorch's table of means by operator", TORCH},
    {false, "Average Forward pass", "the log of caffe time, which has means by layer", NSYS},
    {false, "layerName;execStatus", "OpenVINO's table of means by layer",
     "set ONEDNN_VERBOSE=1 and give the log that the program then prints"},
    {false, "\"KernelName\" & \"BeginNs\"", "rocprof's table of kernels",
     "give the JSON that rocprof --hip-trace writes"},
    {false, "\"Kernel_Name\" & \"Start_Timestamp\"", "rocprofv3's table of kernels",
     "give what traceconv json makes of rocprofv3 --output-format pftrace"},
};

/* Binary formats without a mark in front, by the name of the file. */
static const struct {
    const char *ending, *what, *instead;
} ENDINGS[] = {
    {".ncu-rep", "a report of Nsight Compute, which measures kernels one by one", NSYS},
    {".xplane.pb", "an XPlane file of TensorFlow's or JAX's profiler", "give the trace.json.gz that lies beside it"},
    {".pftrace", "a Perfetto trace", "convert it: traceconv json FILE trace.json"},
    {".perfetto-trace", "a Perfetto trace", "convert it: traceconv json FILE trace.json"},
    {".qdstrm", "what Nsight Systems recorded and did not import",
     "import it with its QdstrmImporter, then export with nsys export --type=sqlite"},
};

static bool has_all(const char *head, size_t n, const char *text)
{
    for (const char *and; (and = strstr(text, " & ")); text = and+3)
        if (!memmem(head, n, text, (size_t)(and-text)))
            return false;
    return bz_text_has(head, n, text);
}

int bz_foreign_fail(const char *path, const char *head, size_t n, bz_error *err)
{
    const char *what = NULL, *instead = NULL;
    size_t length = strlen(path);
    for (size_t i = 0; i < sizeof ENDINGS / sizeof *ENDINGS && !what; i++) {
        size_t m = strlen(ENDINGS[i].ending);
        if (length > m && !strcmp(path + length - m, ENDINGS[i].ending)) {
            what = ENDINGS[i].what;
            instead = ENDINGS[i].instead;
        }
    }
    for (size_t i = 0; i < sizeof FORMS / sizeof *FORMS && !what; i++)
        if (FORMS[i].front ? n >= strlen(FORMS[i].text) && !memcmp(head, FORMS[i].text, strlen(FORMS[i].text))
                           : has_all(head, n, FORMS[i].text)) {
            what = FORMS[i].what;
            instead = FORMS[i].instead;
        }
    if (what)
        return bz_fail(err, BZ_BAD_INPUT, "%s: is %s, and no recording that benanza reads: %s", path, what, instead);
    return bz_fail(err, BZ_BAD_INPUT,
                   "%s: is no recording that benanza reads: give an Nsight Systems SQLite export, a cuDNN, cuBLAS or "
                   "oneDNN log, a PyTorch, ONNX Runtime, TensorFlow or JAX trace, or a file of benanza profile",
                   path);
}
