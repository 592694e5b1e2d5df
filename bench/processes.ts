import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { accessSync, constants, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** Path of the Node executable that package.json pins. It runs every process of a measurement. */
export const node = process.execPath;
export const root = join(import.meta.dirname, '..');

/** Returns the path of an installed program, or undefined. */
export function findProgram(name: string): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(':'), '/usr/sbin', '/usr/local/sbin', '/sbin'];
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

const taskset = findProgram('taskset');

/** Cores: one for the measured process, and one that the load and the upstream share. */
export const cores = { service: 0, load: 1 };
export const isPinned = taskset !== undefined && availableParallelism() >= 2;

/** Returns a command that runs on one core if the machine supports pinning. */
export function pinCommand(core: number | undefined, command: string[]): string[] {
  return isPinned && taskset && core !== undefined ? [taskset, '-c', String(core), ...command] : command;
}

/** Moves this process away from the core of the measured process. */
export function pinSelf(): void {
  if (isPinned && taskset) execFileSync(taskset, ['-a', '-p', '-c', String(cores.load), String(process.pid)]);
}

export type Child = {
  pid: number;
  /** Text that the first group of `ready` matched. */
  ready: string;
  stderr: () => string;
  /** Calls the listener with each line of standard output after `ready`, and with undefined at its end. */
  onLine: (listener: (line: string | undefined) => void) => void;
  stop: () => Promise<void>;
};

export type ChildOptions = {
  core: number | undefined;
  env?: Record<string, string>;
  /** Pattern in standard output that marks the process as ready. */
  ready: RegExp;
};

/** Maximum start time of a process, generous enough for a busy machine. */
export const startTimeoutMs = 60_000;
const stopTimeoutMs = 30_000;
const runningChildren = new Set<ChildProcess>();

/** Starts a process and resolves when its output reports that it is ready. */
export function startChild(command: string[], options: ChildOptions): Promise<Child> {
  const [program = '', ...args] = pinCommand(options.core, command);
  const child = spawn(program, args, { env: { ...process.env, ...options.env }, stdio: ['ignore', 'pipe', 'pipe'] });
  runningChildren.add(child);
  let stdout = '';
  let stderr = '';
  return new Promise((resolve, reject) => {
    const fail = (reason: string) => {
      child.kill('SIGKILL');
      reject(new Error(`${command.join(' ')}: ${reason}\n${stderr}`));
    };
    const timer = setTimeout(() => fail(`not ready after ${startTimeoutMs} ms`), startTimeoutMs);
    child.on('error', (error) => fail(error.message));
    child.on('exit', (code) => {
      runningChildren.delete(child);
      fail(`exited with code ${code}`);
    });
    child.stderr.on('data', (chunk) => {
      stderr += chunk;
    });
    child.stdout.on('data', (chunk) => {
      stdout += chunk;
      const match = options.ready.exec(stdout);
      if (!match) return;
      clearTimeout(timer);
      stdout = '';
      resolve({
        pid: child.pid as number,
        ready: match[1] ?? '',
        stderr: () => stderr,
        onLine: (listener) => {
          createInterface({ input: child.stdout })
            .on('line', listener)
            .on('close', () => listener(undefined));
        },
        stop: () => stopChild(child),
      });
    });
  });
}

function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    const timer = setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs);
    child.on('exit', () => {
      clearTimeout(timer);
      resolve();
    });
    child.kill('SIGTERM');
  });
}

/** Stops all remaining processes. */
export async function stopAll(): Promise<void> {
  await Promise.all([...runningChildren].map(stopChild));
}

/** Length of the clock tick in which Linux reports CPU time. */
const msPerTick = 10;

function readStatFields(pid: number | 'self'): number[] {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The second field is a name in parentheses that may contain spaces.
  return text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number);
}

const field = { utime: 11, stime: 12, childrenUtime: 13, childrenStime: 14 };

/** Returns the CPU time of all threads of a process, in ms. */
export function getCpuMs(pid: number): number {
  const stat = readStatFields(pid);
  return ((stat[field.utime] ?? 0) + (stat[field.stime] ?? 0)) * msPerTick;
}

/** Returns the running child processes of a process. */
export function getChildPids(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number);
}

/** Returns the CPU time of the bench: this process, its running children, and its ended children. */
function getBenchCpuMs(): number {
  const pids = [...runningChildren].flatMap((child) =>
    child.exitCode === null && child.pid !== undefined ? [child.pid] : [],
  );
  const self = readStatFields('self');
  const ended = ((self[field.childrenUtime] ?? 0) + (self[field.childrenStime] ?? 0)) * msPerTick;
  return ended + [process.pid, ...pids].reduce((sum, pid) => sum + getCpuMs(pid), 0);
}

/** Returns the CPU time of the whole machine without idle time. `stolen` went to other virtual machines. */
function getMachineCpuMs(): { busy: number; stolen: number } {
  const line = readFileSync('/proc/stat', 'utf8').split('\n')[0] ?? '';
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, stolen = 0] = line.split(/\s+/).slice(1).map(Number);
  return { busy: (user + nice + system + irq + softirq) * msPerTick, stolen: stolen * msPerTick };
}

/** CPU time of everything except the bench, in cores: 0.2 is a fifth of one core. */
export type Disturbance = {
  /** Other programs on this machine. */
  others: number;
  /** Other machines on the same hardware. */
  stolen: number;
};

/** Starts to measure disturbances. The returned function reports their mean since then. */
export function watchDisturbance(): () => Disturbance {
  const at = performance.now();
  const before = { own: getBenchCpuMs(), ...getMachineCpuMs() };
  return () => {
    const { busy, stolen } = getMachineCpuMs();
    const others = busy - before.busy - (getBenchCpuMs() - before.own);
    const ms = performance.now() - at;
    return { others: Math.max(0, others) / ms, stolen: (stolen - before.stolen) / ms };
  };
}

/** Returns the number of open sockets of a process, including listening ones. */
export function countOpenSockets(pid: number): number {
  const folder = `/proc/${pid}/fd`;
  return readdirSync(folder).filter((name) => readLinkOrEmpty(join(folder, name)).startsWith('socket:')).length;
}

/** Returns the target of a link, or an empty string, because a descriptor may close between listing and reading. */
function readLinkOrEmpty(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}

/** Returns the resident memory of a process, in MB. */
export function getResidentMb(pid: number): number {
  const kb = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kb ?? 0) / 1024;
}
