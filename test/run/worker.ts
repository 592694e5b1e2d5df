/**
 * Runs the test files that the parent names, one after the other. What several files share (PostgreSQL, Chromium) is
 * started by the first that needs it and ends with this process, which ends with the parent or when that has no more files.
 */
import { join } from 'node:path';
import { test } from 'node:test';
import { root } from '../files.ts';

/** A test after those of a file; its result tells the reporter that the file has ended. */
export const endOfFile = 'the end of the file';

process.on('message', async (file: string) => {
  try {
    await import(join(root, 'test', file));
  } catch (error) {
    test('loads', () => {
      throw error;
    });
  }
  // The tests at the top run one after the other.
  await test(endOfFile, () => undefined);
});
process.on('disconnect', () => process.exit());
