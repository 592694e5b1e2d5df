import type { AnswerJob } from '../gateway/answer/answer-job.ts';
import type { ArgumentJob } from '../gateway/arguments/validate-arguments.ts';
import type { CaptureJob } from '../gateway/captures/capture-job.ts';
import type { ConfigurationJob } from '../operations/check-config.ts';
import type { BundleJob, ImportAgainJob, ImportJob } from '../operations/imports/import-job.ts';
import type { ReadBodyJob } from '../operations/operation-input.ts';
import type { DecodeJob } from '../outbound/decode.ts';

/** Kinds of jobs, with their input and output. Both are structured clones. */
export type Jobs = {
  'bundle-description': BundleJob;
  'check-arguments': ArgumentJob;
  'import-again': ImportAgainJob;
  'check-configuration': ConfigurationJob;
  'plan-import': ImportJob;
  'read-answer': AnswerJob;
  'read-body': ReadBodyJob;
  'write-capture': CaptureJob;
  'decode-body': DecodeJob;
};

export type JobKind = keyof Jobs;
export type JobInput<Kind extends JobKind> = Jobs[Kind]['input'];
export type JobOutput<Kind extends JobKind> = Jobs[Kind]['output'];

/** Result of a job: its output, and the memory in it that is transferred rather than copied. */
export type Done<Output> = { output: Output; transfer?: readonly ArrayBuffer[] };

type Job<Kind extends JobKind> = (input: JobInput<Kind>) => Done<JobOutput<Kind>> | Promise<Done<JobOutput<Kind>>>;

/** Loaded by a thread with its first job of a kind. */
export const jobs: { [Kind in JobKind]: () => Promise<Job<Kind>> } = {
  'bundle-description': async () => (await import('../operations/imports/import-job.ts')).runBundle,
  'check-arguments': async () => (await import('../gateway/arguments/validate-arguments.ts')).checkArguments,
  'import-again': async () => (await import('../operations/imports/import-job.ts')).runImportAgain,
  'check-configuration': async () => (await import('../operations/check-config.ts')).runConfigurationJob,
  'plan-import': async () => (await import('../operations/imports/import-job.ts')).runImport,
  'read-answer': async () => (await import('../gateway/answer/answer-job.ts')).readAnswerBody,
  'read-body': async () => (await import('../operations/operation-input.ts')).readLongBody,
  'decode-body': async () => (await import('../outbound/decode.ts')).runDecodeJob,
  'write-capture': async () => (await import('../gateway/captures/capture-job.ts')).writeCapture,
};
