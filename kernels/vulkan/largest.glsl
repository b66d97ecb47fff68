// The largest of one number an invocation of the workgroup, and of `least`; a NaN is skipped. All invocations get it.
// Included after the number of invocations.
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
