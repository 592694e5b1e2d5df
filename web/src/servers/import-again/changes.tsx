import { Badge, Box, Button, Group, Radio, Stack, Text } from '@mantine/core';
import type { ImportAgainPlan } from '../../answers.ts';
import { Folded } from '../../ui/folded.tsx';
import { MoreOf } from '../../ui/more-of.tsx';
import { Section } from '../../ui/section.tsx';
import { visible } from '../../ui/text/visible.ts';
import { Side, type Signs } from '../change-list.tsx';
import { Operations, tokensOf } from '../import/operations.tsx';

type ChangesProps = {
  /** Fields of the server itself. */
  server?: ImportAgainPlan['server'];
  tools: ImportAgainPlan['changed'];
  count: number;
  /** Noun for the tools. */
  of: string;
  signs: Signs;
};

/** List of changes or differences of the server and its tools, in batches. */
export function Changes({ server = [], tools, count, of, signs }: ChangesProps) {
  return (
    <Stack gap="sm">
      <Fields fields={server} signs={signs} />
      <MoreOf entries={tools} count={count} of={of}>
        {({ tool, operation, fields }) => (
          <Box key={tool} className="th-pick-group">
            <Text size="sm">
              <span className="th-mono">{visible(tool)}</span>{' '}
              <Text span size="xs" c="dimmed">
                {visible(operation)}
              </Text>
            </Text>
            <Fields fields={fields} signs={signs} />
          </Box>
        )}
      </MoreOf>
    </Stack>
  );
}

/** Fields with both values. */
function Fields({ fields, signs }: { fields: ImportAgainPlan['server']; signs: Signs }) {
  return fields.map(({ path, before, after }) => (
    <div key={path} className="th-change">
      <Text size="sm" fw={600} className="th-mono">
        {visible(path)}
      </Text>
      <Side kind="removed" sign={signs.before} value={before} />
      <Side kind="added" sign={signs.after} value={after} />
    </div>
  ));
}

type ConflictsProps = {
  plan: ImportAgainPlan;
  /** Keys of the conflicts resolved in favor of the description; `*` means all. */
  taken: ReadonlySet<string>;
  onTaken: (taken: ReadonlySet<string>) => void;
};

/** Conflicts: values that both the user and the description changed, resolved one by one. */
export function Conflicts({ plan: { conflicts, counts }, taken, onTaken }: ConflictsProps) {
  if (counts.conflicts === 0) return null;
  const keys = new Set(conflicts.map(({ key }) => key));
  const takenNow = taken.has('*') ? keys : taken;
  return (
    <Section
      title={counts.conflicts === 1 ? '1 conflict' : `${counts.conflicts} conflicts`}
      text="You edited these values, and the description changed them too. Yours are kept unless you choose otherwise."
      actions={
        <Group gap="sm">
          <Button variant="default" size="xs" onClick={() => onTaken(new Set())}>
            Keep all mine
          </Button>
          <Button
            variant="default"
            size="xs"
            onClick={() => onTaken(counts.conflicts > keys.size ? new Set(['*']) : keys)}
          >
            Use all from description
          </Button>
        </Group>
      }
    >
      <Stack gap="sm">
        <MoreOf entries={conflicts} count={counts.conflicts} of="conflicts">
          {({ key, tool, path, before, yours, document }) => (
            <Radio.Group
              key={key}
              className="th-pick-group"
              label={<span className="th-mono">{visible(tool === undefined ? path : `${tool}: ${path}`)}</span>}
              value={takenNow.has(key) ? 'document' : 'yours'}
              onChange={(side) =>
                onTaken(side === 'document' ? takenNow.union(new Set([key])) : takenNow.difference(new Set([key])))
              }
            >
              <Stack gap={6} pt={6}>
                <Text size="xs" c="dimmed" className="th-value">
                  Last import: {shown(before)}
                </Text>
                <Radio value="yours" label={<Value name="Mine" text={yours} />} />
                <Radio value="document" label={<Value name="Description" text={document} />} />
              </Stack>
            </Radio.Group>
          )}
        </MoreOf>
      </Stack>
    </Section>
  );
}

function Value({ name, text }: { name: string; text: string | undefined }) {
  return (
    <span className="th-value">
      <strong>{name}:</strong> {shown(text)}
    </span>
  );
}

const shown = (text: string | undefined) => (text === undefined ? 'not set' : visible(text));

/** Tools whose operation was removed from the description. */
export function GoneTools({ plan: { gone, counts } }: { plan: ImportAgainPlan }) {
  if (counts.gone === 0) return null;
  return (
    <Section
      title={counts.gone === 1 ? '1 tool to disable' : `${counts.gone} tools to disable`}
      text="Their operations were removed from the description. They stay in the configuration, hidden from agents."
    >
      <Stack gap={4}>
        <MoreOf entries={gone} count={counts.gone} of="tools to disable">
          {(tool) => (
            <div key={tool} className="th-mono">
              {visible(tool)}
            </div>
          )}
        </MoreOf>
      </Stack>
    </Section>
  );
}

type NewProps = {
  plan: ImportAgainPlan;
  chosen: ReadonlySet<string>;
  onChosen: (chosen: ReadonlySet<string>) => void;
};

/** Operations without a tool: new ones, and a collapsed list of those not selected before. */
export function NewOperations({ plan: { offered, counts }, ...choice }: NewProps) {
  if (counts.offered === 0) return null;
  const fresh = offered.filter((operation) => operation.new);
  const others = offered.filter((operation) => !operation.new);
  const hidden = counts.offered - offered.length;
  return (
    <Section
      title={fresh.length > 0 ? 'New operations' : 'Operations without a tool'}
      text="These operations have no tool. Select the ones to add."
      actions={
        <Badge size="lg" aria-live="polite">
          {choice.chosen.size} to add, about {tokensOf(offered, choice.chosen).toLocaleString('en')} tokens
        </Badge>
      }
    >
      <Stack gap="sm">
        {fresh.length > 0 && <Operations operations={fresh} {...choice} />}
        {others.length > 0 && (
          <Folded label={`Show ${others.length} other operations`}>
            <Operations label="Search other operations" operations={others} {...choice} />
          </Folded>
        )}
        {hidden > 0 && <div>{hidden} more operations are not shown. Add them with the command line.</div>}
      </Stack>
    </Section>
  );
}
