// Returns the dot of two words of four signed bytes each. It is the SPIR-V instruction OpSDot with the format "packed 4
// x 8 bits".
#extension GL_EXT_spirv_intrinsics : require
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6019, 6018], id = 4450)
int dot_of_bytes(int a, int b, spirv_literal int packed_format);
int dot4(uint a, uint b) { return dot_of_bytes(int(a), int(b), 0); }
