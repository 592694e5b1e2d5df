import { Folded } from '../../../ui/folded.tsx';
import { Section } from '../../../ui/section.tsx';
import { valueAt, withValue } from '../../config.ts';
import { Field } from '../fields.tsx';
import { useEdited } from '../model/editor-context.ts';
import { Cell, HeadersEditor, NamedRows } from '../named-rows.tsx';

/** What is written once for all tools; folded while there is none of it. */
export function ServerWideSection() {
  const isUsed = useEdited(({ config }) =>
    ['base_url', 'headers', 'forward_headers', 'variables'].some((name) => name in config),
  );
  return (
    <Section title="For all tools" text="An address, headers and values that every tool shares.">
      <Folded label="Base address, headers and variables" isOpenAtFirst={isUsed}>
        <Field
          kind="text"
          path={['base_url']}
          label="Base address"
          placeholder="https://api.example.com/v1"
          text="Tools whose URL begins with / are called below it."
          isMono
        />
        <HeadersEditor path={['headers']} noun="shared header" text="Sent by every tool, unless it has its own" />
        <Field
          kind="list"
          path={['forward_headers']}
          label="Headers passed on from the client"
          placeholder="X-Request-Id"
          text="Every tool sends them on as the MCP client sent them."
        />
        <VariablesEditor />
      </Folded>
    </Section>
  );
}

/** Values that fill {{name}}; they are not secret. */
function VariablesEditor() {
  return (
    <NamedRows<unknown>
      path={['variables']}
      label="Variables"
      text="Fill {{name}} in addresses, headers and constants. Everybody who may read the server sees them."
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
            value={valueAt(row.value, ['value'])}
            isMono
            onChange={(value) => row.change(withValue(row.value, ['value'], value))}
          />
          <Cell
            row={row}
            label={`Description of variable ${row.index + 1}`}
            placeholder="What it is for"
            value={valueAt(row.value, ['description'])}
            onChange={(text) => row.change(withValue(row.value, ['description'], text || undefined))}
          />
        </>
      )}
    </NamedRows>
  );
}
