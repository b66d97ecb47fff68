// Returns the largest of `least` and one number from each invocation of the workgroup, to all of them. NaNs are
// skipped. REQUIRES: all invocations call it. Included after local_size_x.
shared float each[gl_WorkGroupSize.x], strided[16];
float largest(float mine, float least) {
  uint id = gl_LocalInvocationID.x;
  each[id] = mine;
  barrier();
  float most = least;
  if (id < 16) {
    for (uint i = id; i < gl_WorkGroupSize.x; i += 16) most = each[i] > most ? each[i] : most;
    strided[id] = most;
  }
  barrier();
  most = least;
  for (uint i = 0; i < 16; ++i) most = strided[i] > most ? strided[i] : most;
  return most;
}
