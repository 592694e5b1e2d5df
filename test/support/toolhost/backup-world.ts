import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Engine } from '../../../src/store/db.ts';
import { startPostgres } from '../store/postgres.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../upstreams/recording-upstream.ts';
import { startToolhost, type TestToolhost } from './toolhost.ts';
import { toolhost } from './toolhost-command.ts';

export const masterKey = 'kFUL2CNtL2Qk0mlw9bC8vLDnBsrmJg6Uoo0Nd1pLb0E=';

/** Services on databases of these engines, which commands back up and restore. */
export type BackupWorld = {
  folder: string;
  upstream: RecordingUpstream;
  newPath(name: string): string;
  /** Returns the environment of a new, empty database. */
  newDatabase(engine: Engine): Promise<Record<string, string>>;
  backupOf(env: Record<string, string>, ...options: string[]): Promise<string>;
  restore(file: string, env: Record<string, string>): Promise<void>;
  /** Restores the file into a new database and returns its environment. */
  restored(engine: Engine, file: string): Promise<Record<string, string>>;
  serve(env: Record<string, string>): Promise<TestToolhost>;
  stop(running: TestToolhost): Promise<void>;
  end(): Promise<void>;
};

export async function startBackupWorld(engines: readonly Engine[]): Promise<BackupWorld> {
  const folder = mkdtempSync(join(tmpdir(), 'toolhost-backups-'));
  const [postgres, upstream] = await Promise.all([
    engines.includes('postgres') ? startPostgres() : undefined,
    startRecordingUpstream(),
  ]);
  const serving = new Set<TestToolhost>();
  let count = 0;
  const newPath = (name: string) => join(folder, `${++count}-${name}`);
  const newDatabase: BackupWorld['newDatabase'] = async (engine) => {
    const env = { DATA_DIR: newPath('data'), MASTER_KEY: masterKey };
    if (engine === 'sqlite') return env;
    return {
      ...env,
      DATABASE_URL: (await postgres?.createDatabase('empty')) ?? assert.fail('PostgreSQL was not started'),
    };
  };
  const done = async (args: readonly string[], env: Record<string, string>) => {
    const { code, stderr } = await toolhost(args, { env });
    assert.deepEqual([code, stderr], [0, ''], args.join(' '));
  };
  const stop = async (running: TestToolhost) => {
    if (serving.delete(running)) await running.stop();
  };
  const restore: BackupWorld['restore'] = (file, env) => done(['restore', file], env);
  return {
    folder,
    upstream,
    newPath,
    newDatabase,
    async backupOf(env, ...options) {
      const file = newPath('backup');
      await done(['backup', file, ...options], env);
      return file;
    },
    restore,
    async restored(engine, file) {
      const env = await newDatabase(engine);
      await restore(file, env);
      return env;
    },
    async serve(env) {
      const options = { env: { QUOTAS: 'writes=0,servers=0', ...env }, egress: [upstream.port] };
      const running = await startToolhost({ dataDir: env.DATA_DIR ?? '', ...options });
      serving.add(running);
      return running;
    },
    stop,
    async end() {
      for (const running of serving) await stop(running);
      await Promise.all([postgres?.stop(), upstream.close()]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
