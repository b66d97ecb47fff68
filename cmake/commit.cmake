# cmake -DROOT= -DOUT= -P commit.cmake: a source file that knows the commit. Outside of a clone ZRT_COMMIT of the environment
# says it, for a build of sources without their history.
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND git -C ${ROOT} describe --always --dirty --exclude=* --abbrev=12 OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE
                RESULT_VARIABLE failed ERROR_QUIET)
if(failed)
  set(commit "$ENV{ZRT_COMMIT}")
endif()
if(NOT commit)
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT "namespace zinc_rt::tools {\nextern const char* const kCommit;\nconst char* const kCommit = \"@commit@\";\n}\n" @ONLY)
