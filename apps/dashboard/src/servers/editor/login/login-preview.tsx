import { Text } from '@mantine/core';
import { getFieldHosts } from '@toolhost/tool-config/field-hosts';
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
  isReadOnly,
  toSlug,
} from '../../config.ts';
import { formatHosts } from '../../format-hosts.ts';
import { useEditorState } from '../model/editor-context.ts';

/**
 * Pages that a person sees during a login, without anything to press. The texts are those of the service
 * (`login-pages.ts` and `login-fields.ts` in `apps/server/src/oauth/`).
 */
export function LoginPreview() {
  const { base_url, workspace, user } = useSession();
  const { name, slug, isIdentified, hasOauth, tools, fields, hosts } = useEditorState(getShownParts);
  return (
    <section aria-label="Preview" className="th-preview">
      <Text fw={600}>Preview of the pages that people see</Text>
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
          text={`This server calls ${formatHosts(hosts.flat(), fields)} for you and needs the following. Values are stored encrypted, are sent to these hosts only, and are used only for your own calls.`}
          buttons={['Save and continue', 'Cancel']}
        >
          {fields.map((field, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a field has no identity but its index
            <PreviewField key={index} field={field} fields={fields} hosts={hosts[index] ?? []} />
          ))}
        </PreviewPage>
      )}
    </section>
  );
}

function getShownParts({ config }: { config: Config }) {
  const fields = getLoginFields(config);
  const hosts = getFieldHosts(config);
  const rules = ['allow', 'views'].some((part) => getValueAt(config.login, [part]) !== undefined);
  return {
    name: toVisible(asText(config.name)) || 'Server',
    slug: asText(config.slug) || toSlug(asText(config.name)) || 'SLUG',
    hasOauth: config.oauth !== undefined,
    isIdentified: config.oauth === undefined || rules,
    tools: describeTools(config),
    fields,
    hosts: fields.map(({ name }) => hosts.get(asText(name)) ?? []),
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

type FieldProps = { field: JsonObject; fields: readonly JsonObject[]; hosts: readonly string[] };

function PreviewField({ field, fields, hosts }: FieldProps) {
  const helpHost = /^https:\/\/([^/?#]+)/.exec(asText(field.help))?.[1];
  return (
    <div className="th-preview-field">
      {toVisible(asText(field.label)) || 'Label'}
      {field.optional === true && <small> (optional)</small>}
      <div>{field.secret === false && toVisible(asText(field.default))}</div>
      <small>
        {hosts.length > 0 ? `Sent to ${formatHosts(hosts, fields)}.` : 'Not used in the configuration yet.'}
        {helpHost && ` Where to find it (${helpHost})`}
      </small>
    </div>
  );
}
