import { Collapsible } from '../../../ui/collapsible.tsx';
import { Section } from '../../../ui/section.tsx';
import { getValueAt, withValue } from '../../config.ts';
import { declareField, Fields } from '../fields.tsx';
import { useEditorState, useField } from '../model/editor-context.ts';
import { Cell, HeadersEditor, NamedRows } from '../named-rows.tsx';

const { text, list } = declareField;
const baseUrl = text('base_url', 'Base URL', 'Prepended to tool URLs that start with /.', {
  placeholder: 'https://api.example.com/v1',
  isMono: true,
});
const forwardHint = 'Forwarded from the MCP client to the API by every tool.';
const forwardHeaders = list('forward_headers', 'Forwarded headers', forwardHint, { placeholder: 'X-Request-Id' });

/** Settings shared by all tools. Collapsed while none is set. */
export function ServerWideSection() {
  const isUsed = useEditorState(({ config }) =>
    ['base_url', 'headers', 'forward_headers', 'variables'].some((name) => name in config),
  );
  return (
    <Section title="For all tools" text="Base URL, headers, and variables that all tools share.">
      <Collapsible label="Base URL, headers, and variables" isInitiallyOpen={isUsed}>
        <Fields path={[]} fields={[baseUrl]} />
        <HeadersEditor path={['headers']} noun="shared header" text="Sent by every tool unless it overrides them" />
        <Fields path={[]} fields={[forwardHeaders]} />
        <VariablesEditor />
      </Collapsible>
    </Section>
  );
}

/** Editor for values that replace {{name}}. They are not secret. */
function VariablesEditor() {
  return (
    <NamedRows<unknown>
      field={useField(['variables'], true)}
      label="Variables"
      text="Replace {{name}} in URLs, headers, and constants. Visible to everyone who can read the server."
      noun="variable"
      placeholder="subdomain"
      empty={{ value: '' }}
      isOptional
    >
      {(row) => (
        <>
          <Cell
            row={row}
            label={`Value of variable ${row.index + 1}`}
            placeholder="staging"
            value={getValueAt(row.value, ['value'])}
            isMono
            onChange={(value) => row.change(withValue(row.value, ['value'], value))}
          />
          <Cell
            row={row}
            label={`Description of variable ${row.index + 1}`}
            placeholder="Purpose"
            value={getValueAt(row.value, ['description'])}
            onChange={(value) => row.change(withValue(row.value, ['description'], value || undefined))}
          />
        </>
      )}
    </NamedRows>
  );
}
