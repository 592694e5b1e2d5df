import { Text } from '@mantine/core';
import type { ReactNode } from 'react';
import type { JsonObject } from '../../../api-types.ts';
import { useSession } from '../../../frame/session.ts';
import { toVisible } from '../../../ui/text/visible.ts';
import {
  asText,
  type Config,
  getLoginFields,
  getTools,
  getValueAt,
  isDisabled,
  isObject,
  isReadOnly,
  toSlug,
} from '../../config.ts';
import { useEditorState } from '../model/editor-context.ts';

/**
 * Pages that a person sees during a login, without anything to press. The texts are those of the service
 * (`login-pages.ts` and `login-fields-page.ts` in `apps/server/src/oauth/`).
 */
export function LoginPreview() {
  const { base_url, workspace, user } = useSession();
  const { name, slug, isIdentified, hasOauth, tools, fields, hosts } = useEditorState(getShownParts);
  return (
    <section aria-label="Preview" className="th-preview">
      <Text fw={600} size="sm">
        Preview of the pages that people see
      </Text>
      <PreviewPage
        title={`Allow “Claude” to use ${name}?`}
        text="An agent requests access on your behalf. Continue only if you just started this login yourself."
        buttons={[hasOauth ? 'Allow and log in' : 'Allow', 'Cancel']}
      >
        <dl>
          <Fact name="Client" value="Claude" note="Described by a document at claude.ai" />
          <Fact name="Redirects to" value="https://claude.ai" />
          {isIdentified && <Fact name="You are" value={toVisible(user.email ?? user.name ?? user.id)} />}
          <Fact name="Server" value={name} note={`${base_url}/mcp/${slug}`} />
          <Fact name="Tools" {...tools} />
          <Fact name="Operated by" value={toVisible(workspace.name)} note="Not verified by this service." />
        </dl>
      </PreviewPage>
      {fields.length > 0 && (
        <PreviewPage
          title={`Your details for ${name}`}
          text={`This server calls ${formatHosts(hosts.flat())} for you and needs the following. Values are stored encrypted, are sent to these hosts only, and are used only for your own calls.`}
          buttons={['Save and continue', 'Cancel']}
        >
          {fields.map((field, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a field has no identity but its index
            <PreviewField key={index} field={field} hosts={hosts[index] ?? []} />
          ))}
        </PreviewPage>
      )}
    </section>
  );
}

function getShownParts({ config }: { config: Config }) {
  const fields = getLoginFields(config);
  const rules = ['allow', 'views'].some((part) => getValueAt(config.login, [part]) !== undefined);
  return {
    name: toVisible(asText(config.name)) || 'Server',
    slug: asText(config.slug) || toSlug(asText(config.name)) || 'SLUG',
    hasOauth: config.oauth !== undefined,
    isIdentified: config.oauth === undefined || rules,
    tools: describeTools(config),
    fields,
    hosts: fields.map((field) => findHosts(config, asText(field.name))),
  };
}

const maxListedTools = 20;

function describeTools(config: Config): { value: string; note: string } {
  const tools = getTools(config).filter((tool) => !isDisabled(tool));
  const listTools = (reads: boolean) =>
    tools
      .filter((tool) => isReadOnly(tool) === reads)
      .slice(0, maxListedTools)
      .map((tool) => toVisible(asText(tool.name)))
      .join(', ');
  const [readOnly, changing] = [listTools(true), listTools(false)];
  const readText = readOnly && `It can read with: ${readOnly}. `;
  return {
    value: String(tools.length),
    note: readText + (changing ? `It can change data with: ${changing}.` : 'It changes nothing.'),
  };
}

/** Returns the hosts of the tools that send a value, with the variables of the server. */
function findHosts(config: Config, name: string): string[] {
  const { authentication, credentials, headers, base_url } = config;
  const isUsedIn = (value: unknown) => JSON.stringify(value ?? '').includes(`{{${name}}}`);
  const isShared = isUsedIn([authentication, credentials, headers, base_url]);
  const getVariable = (text: string, variable: string) =>
    isObject(config.variables) ? asText(getValueAt(config.variables, [variable, 'value'])) || text : text;
  const hosts = getTools(config)
    .filter((tool) => isShared || isUsedIn([tool.url, tool.headers]))
    .map(({ url }) => asText(url))
    .map((url) => (url.startsWith('/') ? asText(base_url) : url).replaceAll(/\{\{\s*(\w+)\s*\}\}/g, getVariable))
    .flatMap((url) => /^https?:\/\/([^/?#]+)/.exec(url)?.[1] ?? []);
  return [...new Set(hosts)];
}

const maxListedHosts = 5;

function formatHosts(hosts: readonly string[]): string {
  const names = [...new Set(hosts)];
  const hiddenCount = names.length - maxListedHosts;
  return names.slice(0, maxListedHosts).join(', ') + (hiddenCount > 0 ? ` and ${hiddenCount} more hosts` : '');
}

type PageProps = { title: string; text: string; buttons: readonly [string, string]; children: ReactNode };

function PreviewPage({ title, text, buttons: [primary, secondary], children }: PageProps) {
  return (
    <div className="th-preview-page">
      <strong>{title}</strong>
      <p>{text}</p>
      {children}
      <div className="th-preview-buttons">
        <span>{primary}</span>
        <span>{secondary}</span>
      </div>
    </div>
  );
}

function Fact({ name, value, note }: { name: string; value: string; note?: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        {value}
        {note && <small>{note}</small>}
      </dd>
    </div>
  );
}

function PreviewField({ field, hosts }: { field: JsonObject; hosts: readonly string[] }) {
  const helpHost = /^https:\/\/([^/?#]+)/.exec(asText(field.help))?.[1];
  return (
    <div className="th-preview-field">
      {toVisible(asText(field.label)) || 'Label'}
      {field.optional === true && <small> (optional)</small>}
      <div>{field.secret === false && toVisible(asText(field.default))}</div>
      <small>
        {hosts.length > 0 ? `Sent to ${formatHosts(hosts)}.` : 'Not used in the configuration yet.'}
        {helpHost && ` Where to find it (${helpHost})`}
      </small>
    </div>
  );
}
