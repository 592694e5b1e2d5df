/** Third-party code in the package: licenses and the bill of materials. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..', '..');
const read = (path: string): unknown => JSON.parse(readFileSync(join(root, path), 'utf8'));

/** Third-party package whose code is included. `identifier` is an SPDX expression; `text` is the license text. */
export type Component = { name: string; version: string; identifier?: string; text?: string };

/** Returns the packages of bundled files. */
export function collectComponents(files: readonly string[]): Component[] {
  const folders = files.map((file) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0]);
  return [...new Set(folders.filter((folder) => folder !== undefined))].map((folder) => {
    const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Component & { license: string };
    const file = readdirSync(folder).find((name) => /^(licen[cs]e|copying)/i.test(name));
    const text = file && readFileSync(join(folder, file), 'utf8').trim();
    return { name: manifest.name, version: manifest.version, identifier: manifest.license, ...(text && { text }) };
  });
}

/** Returns the packages in the dashboard: those listed by its build, and the font, which only the stylesheet names. */
export function readDashboardComponents(): Component[] {
  const listed = read('dist/web/.vite/licenses.json') as Component[];
  return [...listed, ...collectComponents([join(root, 'node_modules', '@fontsource-variable', 'geist', 'files')])];
}

/** Removes duplicate packages and sorts by name. */
export function sortAndDeduplicate(components: readonly Component[]): Component[] {
  const byKey = new Map(components.map((component) => [`${component.name}@${component.version}`, component]));
  return [...byKey].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, component]) => component);
}

export function formatNotice(components: readonly Component[]): string {
  const sections = components.map(({ name, version, identifier, text }) =>
    [`## ${name} ${version} (${identifier})`, ...(text === undefined ? [] : [text])].join('\n\n'),
  );
  return `${['# Third-party packages included in this package', ...sections].join('\n\n')}\n`;
}

type Manifest = { name: string; version: string; license: string };
type LockFile = { packages: Record<string, { version: string; integrity?: string }> };

/** Returns the bill of materials in CycloneDX 1.6. */
export function buildBillOfMaterials(components: readonly Component[]): string {
  const { name, version, license } = read('package.json') as Manifest;
  const locked = Object.entries((read('package-lock.json') as LockFile).packages);
  const getHashes = (component: Component) => {
    const isInstalledAt = (path: string) => path.endsWith(`node_modules/${component.name}`);
    const lockEntry = locked.find(([path, entry]) => isInstalledAt(path) && entry.version === component.version);
    const sha512 = /^sha512-(\S+)/.exec(lockEntry?.[1].integrity ?? '')?.[1];
    return sha512 && { hashes: [{ alg: 'SHA-512', content: Buffer.from(sha512, 'base64').toString('hex') }] };
  };
  const describe = (component: Component) => ({
    name: component.name,
    version: component.version,
    purl: `pkg:npm/${component.name.replace('@', '%40')}@${component.version}`,
    ...(component.identifier && { licenses: [{ expression: component.identifier }] }),
  });
  const bill = {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { component: { type: 'application', ...describe({ name, version, identifier: license }) } },
    components: components.map((component) => ({ type: 'library', ...describe(component), ...getHashes(component) })),
  };
  return `${JSON.stringify(bill, undefined, 2)}\n`;
}
