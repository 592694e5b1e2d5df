import { Anchor, Box, Collapse, Group, MultiSelect, Stack, Text, UnstyledButton } from '@mantine/core';
import { IconChevronDown, IconChevronRight, IconTrash } from '@tabler/icons-react';
import { Link } from 'react-router';
import type { JsonObject } from '../../../answers.ts';
import { CopyButton } from '../../../ui/actions/copy-button.tsx';
import { visible } from '../../../ui/text/visible.ts';
import { isObject, listOf, type PathPart, textOf, toolsOf, valueAt, viewsOf } from '../../config.ts';
import { useShownServer } from '../../server-page.tsx';
import { AddButton, IconButton } from '../edit-buttons.tsx';
import { Errors, errorText, Warnings } from '../field-messages.tsx';
import { declared, Fields } from '../fields.tsx';
import { fieldId, useEdited, useEditor, useField, useMessages, useValue } from '../model/editor-context.ts';

type Props = { name: string; isOpen: boolean; onToggle: () => void; onRemove: () => void };

/** View in the list: its header, and its form while it is open. */
export function ViewItem({ name, isOpen, onToggle, onRemove }: Props) {
  const { errors } = useMessages(['views', name]);
  const title = textOf(useValue(['views', name, 'title']));
  return (
    <Box className="th-card th-tool" data-open={isOpen || undefined}>
      <Group gap={4} wrap="nowrap" px="xs" py={6} id={fieldId(`views.${name}`)} tabIndex={-1}>
        <UnstyledButton onClick={onToggle} aria-expanded={isOpen} flex={1} miw={0} p={4}>
          <Group gap="xs" wrap="nowrap">
            {isOpen ? <IconChevronDown size={16} /> : <IconChevronRight size={16} />}
            <Text className="th-mono" fw={600} truncate>
              {visible(name)}
            </Text>
            <Text size="sm" c="dimmed" truncate visibleFrom="sm">
              {visible(title)}
            </Text>
          </Group>
        </UnstyledButton>
        <IconButton label={`Remove view ${visible(name)}`} icon={IconTrash} onClick={onRemove} />
      </Group>
      <Box px="md" pb={errors.length > 0 ? 'xs' : 0}>
        <Errors list={errors} />
      </Box>
      <Collapse expanded={isOpen} keepMounted={false}>
        <Box p="md" pt={4}>
          <ViewForm name={name} />
        </Box>
      </Collapse>
    </Box>
  );
}

const modes = [
  { value: 'list', label: 'List all tools' },
  { value: 'search', label: 'Search' },
];

const { text, long, check, choice, json } = declared;
const texts = [
  text('title', 'Title', 'Replaces the server name.'),
  long('description', 'View description', 'Replaces the server description.'),
];
const allThatRead = 'If neither tools nor tags are set, the view contains every read-only tool.';
const settings = [
  check('read_only', 'Read-only tools only', allThatRead),
  choice('tool_mode', 'Tool delivery for this view', '', modes, { placeholder: 'List all tools' }),
];
const fixed = 'Object such as {"account": "acme"}. Sent in every call. Agents neither see nor override it.';

function ViewForm({ name }: { name: string }) {
  const path = ['views', name];
  const { isNew } = useEditor();
  return (
    <Stack gap="sm">
      {!isNew && <ViewAddress name={name} />}
      <Fields path={path} of={texts} />
      <ViewTools path={path} />
      <ViewTags path={path} />
      <Fields path={path} of={settings} />
    </Stack>
  );
}

/** Returns the name of an entry of `tools`, which is a name or an object. */
function nameIn(entry: unknown): string {
  return textOf(isObject(entry) ? entry.name : entry);
}

function ViewTools({ path }: { path: readonly PathPart[] }) {
  const { store } = useEditor();
  const at = [...path, 'tools'];
  const entries = listOf(useValue(at));
  const names = entries.map(nameIn);
  const choose = (chosen: readonly string[]) => {
    const next = chosen.map((one) => entries[names.indexOf(one)] ?? one);
    const hasTags = valueAt(store.now().config, [...path, 'tags']) !== undefined;
    store.set(at, next.length > 0 || !hasTags ? next : undefined);
  };
  return (
    <>
      <Several
        at={at}
        label="Tools"
        text="In this order. Type to search."
        of={(tool) => [tool.name]}
        names={names}
        choose={choose}
      />
      {entries.map((entry, index) =>
        isObject(entry) ? (
          <ChangedTool key={nameIn(entry)} at={[...at, index]} tool={visible(nameIn(entry))} />
        ) : (
          <AddButton key={nameIn(entry)} onClick={() => store.set([...at, index], { name: entry })}>
            {`Customize ${visible(nameIn(entry))}`}
          </AddButton>
        ),
      )}
    </>
  );
}

function ViewTags({ path }: { path: readonly PathPart[] }) {
  const { set } = useEditor();
  const at = [...path, 'tags'];
  const names = listOf(useValue(at)).map(textOf);
  const choose = (chosen: readonly string[]) => set(at, chosen.length > 0 ? chosen : undefined);
  return (
    <Several
      at={at}
      label="Tags"
      text="Tools with any of these tags are also in the view."
      of={(tool) => listOf(tool.tags)}
      names={names}
      choose={choose}
    />
  );
}

type SeveralProps = {
  at: readonly PathPart[];
  label: string;
  text: string;
  /** Returns the values of a tool that can be chosen. */
  of: (tool: JsonObject) => readonly unknown[];
  names: readonly string[];
  choose: (names: readonly string[]) => void;
};

/** Multi-select of values that tools have. The options update when the tool list changes. */
function Several({ at, label, text, of, names, choose }: SeveralProps) {
  const { store } = useEditor();
  const field = useField(at, true);
  useEdited(({ listed }) => listed);
  const known = toolsOf(store.now().config).flatMap(of).map(textOf);
  const options = [...new Set([...known, ...names])].filter((name) => name !== '');
  return (
    <div>
      <MultiSelect
        id={fieldId(field.path)}
        label={label}
        description={text}
        data={options.map((value) => ({ value, label: visible(value) }))}
        value={[...names]}
        onChange={choose}
        onBlur={field.touch}
        searchable
        limit={100}
        clearable
        readOnly={field.isReadOnly}
        error={errorText(field.errors)}
        className="th-mono"
      />
      <Warnings list={field.warnings} />
    </div>
  );
}

/** Overrides for one tool of a view. */
function ChangedTool({ at, tool }: { at: readonly PathPart[]; tool: string }) {
  const fields = [
    text('title', `Title of ${tool}`),
    long('description', `Description of ${tool}`),
    json('arguments', `Fixed arguments of ${tool}`, fixed, { minRows: 2 }),
  ];
  return (
    <Box component="fieldset" className="th-card" p="sm" m={0}>
      <Text component="legend" size="sm" fw={600} className="th-mono" px={4}>
        {tool}
      </Text>
      <Stack gap="sm">
        <Fields path={at} of={fields} />
      </Stack>
    </Box>
  );
}

/** URL of a saved view, and a link to connect a client to it. */
function ViewAddress({ name }: { name: string }) {
  const { server, config } = useShownServer();
  const url = `${server.url}/${name}`;
  if (!Object.hasOwn(viewsOf(config), name)) {
    return (
      <Text size="sm" c="dimmed">
        After you save, agents can reach it at {visible(url)}.
      </Text>
    );
  }
  return (
    <Group gap="xs">
      <Text className="th-mono" size="sm">
        {visible(url)}
      </Text>
      <CopyButton value={url} label={`Copy URL of ${visible(name)}`} />
      <Anchor component={Link} to={`/servers/${server.slug}/connect?view=${encodeURIComponent(name)}`} size="sm">
        Connect a client
      </Anchor>
    </Group>
  );
}
