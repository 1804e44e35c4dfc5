// Limits of the floating types, as powers of two: a finite value v that is not 0 has the exponent e with
// 2^e <= |v| < 2^(e+1). IEEE 754 for fp16, fp32, fp64; bf16 is fp32 with 16 bits less; fp8 as the OCP 8-bit formats.

export interface FloatLimits {
  smallestSubnormal: number;
  smallestNormal: number;
  /** Exponent of the largest finite value. */
  largest: number;
  max: number;
}

const limits: Record<string, FloatLimits> = {
  fp16: { smallestSubnormal: -24, smallestNormal: -14, largest: 15, max: 65504 },
  bf16: { smallestSubnormal: -133, smallestNormal: -126, largest: 127, max: 3.3895313892515355e38 },
  fp32: { smallestSubnormal: -149, smallestNormal: -126, largest: 127, max: 3.4028234663852886e38 },
  fp64: { smallestSubnormal: -1074, smallestNormal: -1022, largest: 1023, max: Number.MAX_VALUE },
  fp8_e4m3fn: { smallestSubnormal: -9, smallestNormal: -6, largest: 8, max: 448 },
  fp8_e5m2: { smallestSubnormal: -16, smallestNormal: -14, largest: 15, max: 57344 },
};

const longNames: Record<string, string> = {
  float16: "fp16", bfloat16: "bf16", float32: "fp32", float64: "fp64", float8_e4m3fn: "fp8_e4m3fn", float8_e5m2: "fp8_e5m2",
};

/** "fp16" for "float16" and for "fp16". */
export function shortDtype(name: string): string {
  return longNames[name] ?? name;
}

export function floatLimits(dtype: string): FloatLimits | undefined {
  return limits[shortDtype(dtype)];
}

export const fp16 = limits.fp16 as FloatLimits;
