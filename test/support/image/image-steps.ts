import { execFile } from 'node:child_process';
import { cpSync, existsSync, globSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { basename, dirname, isAbsolute, join, matchesGlob, relative, resolve } from 'node:path';
import { promisify } from 'node:util';
import { root } from '../../files.ts';

const run = promisify(execFile);
const stepTimeoutMs = 900_000;

/** Last stage of the Dockerfile, as a container engine sees it. */
export type BuiltImage = {
  /** Root folder of its file system, without the files of its base image. */
  root: string;
  env: Record<string, string>;
  user: string;
  entrypoint: string[];
  command: string[];
  healthcheck: string[];
  volumes: string[];
};

type Stage = BuiltImage & { name: string; workdir: string; args: Record<string, string> };

export type Instruction = { keyword: string; text: string };

/** Parses the instructions of a Dockerfile and joins continued lines. */
export function parseInstructions(dockerfile: string): Instruction[] {
  return dockerfile
    .replaceAll(/^\s*#.*\n/gm, '')
    .replaceAll(/\\\n\s*/g, ' ')
    .split('\n')
    .map((line) => /^([A-Z]+)\s+(.*)$/.exec(line.trim()))
    .filter((match) => match !== null)
    .map(([, keyword = '', text = '']) => ({ keyword, text }));
}

/**
 * Runs the instructions of our Dockerfile without a container engine. Each stage is a folder, and its commands run in
 * its WORKDIR with the Node version of the tests, so commands must not use absolute paths.
 */
export async function runImageSteps(folder: string, buildArgs: Record<string, string>): Promise<BuiltImage> {
  const stages: Stage[] = [];
  for (const { keyword, text } of parseInstructions(readFileSync(join(root, 'Dockerfile'), 'utf8'))) {
    const stage = stages.at(-1);
    if (keyword === 'FROM') stages.push(newStage(folder, stages.length, text));
    else if (stage) await runStep(stage, { keyword, text }, { stages, buildArgs });
  }
  const last = stages.at(-1);
  if (!last) throw new Error('the Dockerfile has no stage');
  return last;
}

function newStage(folder: string, index: number, text: string): Stage {
  const stageRoot = join(folder, `stage-${index}`);
  mkdirSync(stageRoot);
  const name = / AS (\S+)/i.exec(text)?.[1] ?? '';
  const emptyImage = { env: {}, args: {}, user: '', entrypoint: [], command: [], healthcheck: [], volumes: [] };
  return { root: stageRoot, name, workdir: '/', ...emptyImage };
}

type Build = { stages: readonly Stage[]; buildArgs: Record<string, string> };

async function runStep(stage: Stage, { keyword, text }: Instruction, build: Build): Promise<void> {
  if (keyword === 'WORKDIR') {
    stage.workdir = resolve(stage.workdir, text);
    mkdirSync(join(stage.root, stage.workdir), { recursive: true });
  } else if (keyword === 'ARG') {
    const [name = '', value = ''] = text.split('=');
    stage.args[name] = build.buildArgs[name] ?? value;
  } else if (keyword === 'ENV') {
    for (const [, name = '', quoted, value = ''] of text.matchAll(/(\w+)=(?:"(.*?)"|(\S+))/g))
      stage.env[name] = quoted ?? value;
  } else if (keyword === 'COPY') copy(stage, text, build.stages);
  else if (keyword === 'RUN') await runCommand(stage, text);
  else recordMetadata(stage, { keyword, text });
}

/** Records an instruction that is only metadata for the engine. */
function recordMetadata(stage: Stage, { keyword, text }: Instruction): void {
  const parseList = () => JSON.parse(text.slice(text.indexOf('['))) as string[];
  if (keyword === 'USER') stage.user = text;
  else if (keyword === 'VOLUME') stage.volumes.push(text);
  else if (keyword === 'ENTRYPOINT') stage.entrypoint = parseList();
  else if (keyword === 'CMD') stage.command = parseList();
  else if (keyword === 'HEALTHCHECK') stage.healthcheck = parseList();
  else if (!['EXPOSE', 'STOPSIGNAL'].includes(keyword)) throw new Error(`the tests cannot run ${keyword}`);
}

function copy(stage: Stage, text: string, stages: readonly Stage[]): void {
  const words = text.split(/\s+/);
  const fromStage = words.find((word) => word.startsWith('--from='))?.slice('--from='.length);
  const paths = words.filter((word) => !word.startsWith('--'));
  const target = paths.pop() ?? '';
  const base = fromStage === undefined ? root : (stages.find(({ name }) => name === fromStage)?.root ?? '');
  const targetPath = join(stage.root, resolve(stage.workdir, target));
  const isIgnored = fromStage === undefined ? createIgnoreFilter() : () => false;
  for (const path of paths) {
    const source = join(base, path);
    const isFolder = statSync(source).isDirectory();
    const destination =
      !isFolder && (target.endsWith('/') || existsSync(targetPath)) ? join(targetPath, basename(path)) : targetPath;
    mkdirSync(dirname(destination), { recursive: true });
    cpSync(source, destination, { recursive: true, filter: (file) => !isIgnored(relative(root, file)) });
  }
}

/** Returns a predicate for the paths that `.dockerignore` excludes from the build context. */
function createIgnoreFilter(): (path: string) => boolean {
  const patterns = readFileSync(join(root, '.dockerignore'), 'utf8').trim().split('\n');
  return (path) => patterns.some((pattern) => path !== '' && matchesGlob(path, pattern));
}

/** Links the packages of the checkout, which come from the same lock file, and the workspaces of the stage itself. */
function linkPackages(folder: string): void {
  const modules = join(folder, 'node_modules');
  mkdirSync(join(modules, '@toolhost'), { recursive: true });
  for (const name of readdirSync(join(root, 'node_modules'))) {
    if (name !== '@toolhost') symlinkSync(join(root, 'node_modules', name), join(modules, name));
  }
  for (const path of globSync('{apps,packages}/*', { cwd: folder })) {
    symlinkSync(join(folder, path), join(modules, '@toolhost', basename(path)));
  }
}

async function runCommand(stage: Stage, text: string): Promise<void> {
  const cwd = join(stage.root, stage.workdir);
  if (text.split(/\s+/).some((word) => isAbsolute(word))) throw new Error(`the tests cannot run: ${text}`);
  if (/^npm ci (?!.*--omit)/.test(text)) {
    linkPackages(cwd);
    return;
  }
  const path = `${dirname(process.execPath)}:${process.env.PATH}`;
  const env = { ...process.env, ...stage.env, ...stage.args, PATH: path };
  await run('/bin/sh', ['-euc', text], { cwd, env, timeout: stepTimeoutMs, maxBuffer: 50_000_000 });
}
