import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { accessSync, constants, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** The Node that package.json pins runs every process of a measurement. */
export const node = process.execPath;
export const root = join(import.meta.dirname, '..');

/** Finds a program on the machine, or undefined. */
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

/** The measured process has one core; the load and the upstream share the other. */
export const cores = { service: 0, load: 1 };
export const isPinned = taskset !== undefined && availableParallelism() >= 2;

/** The command that runs another one on one core, where that is possible. */
export function pinned(core: number | undefined, command: string[]): string[] {
  return isPinned && taskset && core !== undefined ? [taskset, '-c', String(core), ...command] : command;
}

/** Moves this process away from the core of the measured one. */
export function pinSelf(): void {
  if (isPinned && taskset) execFileSync(taskset, ['-a', '-p', '-c', String(cores.load), String(process.pid)]);
}

export type Child = {
  pid: number;
  /** The text that the first group of `ready` matched. */
  ready: string;
  stderr: () => string;
  /** Called with each line of standard output after `ready`, and with undefined when it has ended. */
  onLine: (listener: (line: string | undefined) => void) => void;
  stop: () => Promise<void>;
};

export type ChildOptions = {
  core: number | undefined;
  env?: Record<string, string>;
  /** Looked for in standard output. */
  ready: RegExp;
};

/** Limit of the time that a process takes to start, also on a busy machine. */
export const startMs = 60_000;
const stopMs = 30_000;
const living = new Set<ChildProcess>();

/** Starts a process and resolves when its output says that it is ready. */
export function startChild(command: string[], options: ChildOptions): Promise<Child> {
  const [program = '', ...args] = pinned(options.core, command);
  const child = spawn(program, args, { env: { ...process.env, ...options.env }, stdio: ['ignore', 'pipe', 'pipe'] });
  living.add(child);
  let stdout = '';
  let stderr = '';
  return new Promise((resolve, reject) => {
    const fail = (why: string) => {
      child.kill('SIGKILL');
      reject(new Error(`${command.join(' ')}: ${why}\n${stderr}`));
    };
    const timer = setTimeout(() => fail(`was not ready after ${startMs} ms`), startMs);
    child.on('error', (error) => fail(error.message));
    child.on('exit', (code) => {
      living.delete(child);
      fail(`ended with ${code}`);
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
    const timer = setTimeout(() => child.kill('SIGKILL'), stopMs);
    child.on('exit', () => {
      clearTimeout(timer);
      resolve();
    });
    child.kill('SIGTERM');
  });
}

/** Ends all processes that are left, also after a failure. */
export async function stopAll(): Promise<void> {
  await Promise.all([...living].map(stopChild));
}

/** Linux counts processor time for programs in hundredths of a second. */
const msPerTick = 10;

function statFields(pid: number | 'self'): number[] {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The second field is a name in parentheses that may hold spaces.
  return text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number);
}

const field = { utime: 11, stime: 12, childrenUtime: 13, childrenStime: 14 };

/** Processor time that a process has used in all its threads, in ms. */
export function cpuMs(pid: number): number {
  const stat = statFields(pid);
  return ((stat[field.utime] ?? 0) + (stat[field.stime] ?? 0)) * msPerTick;
}

/** Processes that a process has started and that live. */
export function childPids(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number);
}

/** Processor time of everything that belongs to the bench: this process, those it runs, and those that have ended. */
function ownCpuMs(): number {
  const pids = [...living].flatMap((child) => (child.exitCode === null && child.pid !== undefined ? [child.pid] : []));
  const self = statFields('self');
  const ended = ((self[field.childrenUtime] ?? 0) + (self[field.childrenStime] ?? 0)) * msPerTick;
  return ended + [process.pid, ...pids].reduce((sum, pid) => sum + cpuMs(pid), 0);
}

/** Processor time of the whole machine without idle time; `stolen` went to other virtual machines. */
function machineCpuMs(): { busy: number; stolen: number } {
  const line = readFileSync('/proc/stat', 'utf8').split('\n')[0] ?? '';
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, stolen = 0] = line.split(/\s+/).slice(1).map(Number);
  return { busy: (user + nice + system + irq + softirq) * msPerTick, stolen: stolen * msPerTick };
}

/** Processor time of others besides the bench, in cores: 0.2 is a fifth of one core. */
export type Disturbance = {
  /** Other programs on this machine. */
  others: number;
  /** Other machines on the same hardware. */
  stolen: number;
};

/** Starts to watch disturbances of a measurement; the result is their mean since then. */
export function watchDisturbance(): () => Disturbance {
  const at = performance.now();
  const before = { own: ownCpuMs(), ...machineCpuMs() };
  return () => {
    const { busy, stolen } = machineCpuMs();
    const others = busy - before.busy - (ownCpuMs() - before.own);
    const ms = performance.now() - at;
    return { others: Math.max(0, others) / ms, stolen: (stolen - before.stolen) / ms };
  };
}

/** Sockets that a process has open, those that listen too. */
export function openSockets(pid: number): number {
  const folder = `/proc/${pid}/fd`;
  return readdirSync(folder).filter((name) => linkOf(join(folder, name)).startsWith('socket:')).length;
}

/** A descriptor may be closed between listing and reading it. */
function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}

/** Resident memory in MB. */
export function residentMb(pid: number): number {
  const kb = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kb ?? 0) / 1024;
}
