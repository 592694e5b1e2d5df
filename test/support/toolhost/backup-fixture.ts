import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Engine } from '../../../apps/server/src/store/db.ts';
import { startPostgres } from '../store/postgres.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../upstreams/recording-upstream.ts';
import { startToolhost, type TestToolhost } from './toolhost.ts';
import { runToolhostCommand } from './toolhost-command.ts';

export const masterKey = 'kFUL2CNtL2Qk0mlw9bC8vLDnBsrmJg6Uoo0Nd1pLb0E=';

/** Services on databases of these engines, which commands back up and restore. */
export type BackupFixture = {
  folder: string;
  upstream: RecordingUpstream;
  newPath(name: string): string;
  /** Returns the environment of a new, empty database. */
  newDatabase(engine: Engine): Promise<Record<string, string>>;
  backUp(env: Record<string, string>, ...options: string[]): Promise<string>;
  restore(file: string, env: Record<string, string>): Promise<void>;
  /** Restores the file into a new database and returns its environment. */
  restoreToNewDatabase(engine: Engine, file: string): Promise<Record<string, string>>;
  serve(env: Record<string, string>): Promise<TestToolhost>;
  stop(running: TestToolhost): Promise<void>;
  stopAll(): Promise<void>;
};

export async function startBackupFixture(engines: readonly Engine[]): Promise<BackupFixture> {
  const folder = mkdtempSync(join(tmpdir(), 'toolhost-backups-'));
  const [postgres, upstream] = await Promise.all([
    engines.includes('postgres') ? startPostgres() : undefined,
    startRecordingUpstream(),
  ]);
  const runningServices = new Set<TestToolhost>();
  let count = 0;
  const newPath = (name: string) => join(folder, `${++count}-${name}`);
  const newDatabase: BackupFixture['newDatabase'] = async (engine) => {
    const env = { DATA_DIR: newPath('data'), MASTER_KEY: masterKey };
    if (engine === 'sqlite') return env;
    return {
      ...env,
      DATABASE_URL: (await postgres?.createDatabase('empty')) ?? assert.fail('PostgreSQL was not started'),
    };
  };
  const runSuccessfully = async (args: readonly string[], env: Record<string, string>) => {
    const { code, stderr } = await runToolhostCommand(args, { env });
    assert.deepEqual([code, stderr], [0, ''], args.join(' '));
  };
  const stop = async (running: TestToolhost) => {
    if (runningServices.delete(running)) await running.stop();
  };
  const restore: BackupFixture['restore'] = (file, env) => runSuccessfully(['restore', file], env);
  return {
    folder,
    upstream,
    newPath,
    newDatabase,
    async backUp(env, ...options) {
      const file = newPath('backup');
      await runSuccessfully(['backup', file, ...options], env);
      return file;
    },
    restore,
    async restoreToNewDatabase(engine, file) {
      const env = await newDatabase(engine);
      await restore(file, env);
      return env;
    },
    async serve(env) {
      const options = { env: { QUOTAS: 'writes=0,servers=0', ...env }, egressPorts: [upstream.port] };
      const running = await startToolhost({ dataDir: env.DATA_DIR ?? '', ...options });
      runningServices.add(running);
      return running;
    },
    stop,
    async stopAll() {
      for (const running of runningServices) await stop(running);
      await Promise.all([postgres?.stop(), upstream.close()]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
