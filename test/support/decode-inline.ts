import { type DecodeOnThread, runDecodeJob } from '@toolhost/safe-http/decode';

/** Decodes long compressed responses without a thread. */
export const decodeOnThread: DecodeOnThread = async (input) => runDecodeJob(input).output;
