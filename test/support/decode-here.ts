import { type DecodeOnThread, runDecodeJob } from '../../src/outbound/decode.ts';

/** Decodes long compressed responses without a thread. */
export const decodeOnThread: DecodeOnThread = async (input) => runDecodeJob(input).output;
