# Toolchain for the prebuilt addons: zig as a C++ cross compiler for Linux, see scripts/prebuild.sh.
#   MOONCAKE_KV_ZIG        the zig program
#   MOONCAKE_KV_ZIG_CPU    x86_64 or aarch64
#   MOONCAKE_KV_ZIG_GLIBC  the oldest glibc that the addon runs on, as in 2.28
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${MOONCAKE_KV_ZIG_CPU})
set(CMAKE_CXX_COMPILER ${MOONCAKE_KV_ZIG} c++)
set(CMAKE_CXX_COMPILER_TARGET ${MOONCAKE_KV_ZIG_CPU}-linux-gnu.${MOONCAKE_KV_ZIG_GLIBC})
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG" CACHE STRING "")
set(CMAKE_SHARED_LINKER_FLAGS_RELEASE -s CACHE STRING "")
# A program to try would make zig build its C++ library once more, for the flags of a debug build.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES MOONCAKE_KV_ZIG MOONCAKE_KV_ZIG_CPU MOONCAKE_KV_ZIG_GLIBC)
set(CMAKE_PROJECT_INCLUDE ${CMAKE_CURRENT_LIST_DIR}/zig-project.cmake)
