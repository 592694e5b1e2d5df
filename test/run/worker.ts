/**
 * Runs the test files that the parent process sends, one after the other. Shared services (PostgreSQL, Chromium) are
 * started by the first file that needs them and stop with this process, which exits when the parent disconnects.
 */
import { join } from 'node:path';
import { test } from 'node:test';
import { root } from '../files.ts';

/** Name of a test that runs after those of a file. Its result tells the reporter that the file has ended. */
export const endOfFile = 'the end of the file';

process.on('message', async (file: string) => {
  try {
    await import(join(root, file));
  } catch (error) {
    test('loads', () => {
      throw error;
    });
  }
  // Top-level tests run one after the other.
  await test(endOfFile, () => undefined);
});
process.on('disconnect', () => process.exit());
