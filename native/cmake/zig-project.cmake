# zig knows from the language alone that a header is to be precompiled.
set(CMAKE_CXX_COMPILE_OPTIONS_CREATE_PCH -x c++-header)
set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH -include-pch <PCH_FILE>)
# Archives by zig ar: CMake calls one program, zig takes a word first.
set(CMAKE_CXX_ARCHIVE_CREATE "${MOONCAKE_KV_ZIG} ar qc <TARGET> <OBJECTS>")
set(CMAKE_CXX_ARCHIVE_APPEND "${MOONCAKE_KV_ZIG} ar q <TARGET> <OBJECTS>")
set(CMAKE_CXX_ARCHIVE_FINISH "${MOONCAKE_KV_ZIG} ranlib <TARGET>")
