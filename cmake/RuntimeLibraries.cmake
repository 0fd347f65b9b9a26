# The libraries under the benchmark runtime, as the target benanza_runtime_libraries. Used when the runtime
# is built, and again by whoever links it.
find_library(BENANZA_DNNL dnnl REQUIRED)
find_path(BENANZA_DNNL_HEADERS dnnl.h REQUIRED)
find_library(BENANZA_BENCHMARK benchmark REQUIRED)
find_path(BENANZA_BENCHMARK_HEADERS benchmark/benchmark.h REQUIRED)
find_library(BENANZA_HWLOC hwloc REQUIRED)
find_library(BENANZA_CBLAS NAMES openblas cblas blas REQUIRED)
find_path(BENANZA_CBLAS_HEADERS cblas.h PATH_SUFFIXES openblas-pthread openblas REQUIRED)

if(NOT TARGET benanza_runtime_libraries)
  add_library(benanza_runtime_libraries INTERFACE IMPORTED GLOBAL)
  target_link_libraries(benanza_runtime_libraries INTERFACE ${BENANZA_DNNL} ${BENANZA_BENCHMARK} ${BENANZA_HWLOC}
                        ${BENANZA_CBLAS} gomp stdc++ m pthread ${CMAKE_DL_LIBS})
  target_include_directories(benanza_runtime_libraries SYSTEM INTERFACE ${BENANZA_DNNL_HEADERS}
                             ${BENANZA_BENCHMARK_HEADERS} ${BENANZA_CBLAS_HEADERS})
endif()
