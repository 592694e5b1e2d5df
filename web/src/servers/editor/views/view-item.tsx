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

/** A view in the list: its head, and its form when it is open. */
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
        <IconButton label={`Remove the view ${visible(name)}`} icon={IconTrash} onClick={onRemove} />
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
  { value: 'list', label: 'All of them in a list' },
  { value: 'search', label: 'By search' },
];

const { text, long, check, choice, json } = declared;
const texts = [
  text('title', 'Title', 'Instead of the name of the server.'),
  long('description', 'What agents read first', 'Instead of the description of the server.'),
];
const allThatRead = 'With neither tools nor tags, every tool that reads is in the view.';
const settings = [
  check('read_only', 'Only tools that read', allThatRead),
  choice('tool_mode', 'How its agents get the tools', '', modes, { placeholder: 'All of them in a list' }),
];
const fixed = 'An object such as {"account": "acme"}: sent in every call, not shown to agents and not taken from them.';

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

/** The name in an entry of `tools`, which is a name or an object. */
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
            {`Other texts or fixed arguments for ${visible(nameIn(entry))}`}
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
      text="Every tool with one of them is in the view too."
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
  /** What may be chosen of a tool. */
  of: (tool: JsonObject) => readonly unknown[];
  names: readonly string[];
  choose: (names: readonly string[]) => void;
};

/** Chooses names that tools have. They are read again when the list of tools changes, or this part of the page. */
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

/** What differs in the view of one of its tools. */
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

/** The address of a view of a stored server, and the page on which a client is connected to it. */
function ViewAddress({ name }: { name: string }) {
  const { server, config } = useShownServer();
  const url = `${server.url}/${name}`;
  if (!Object.hasOwn(viewsOf(config), name)) {
    return (
      <Text size="sm" c="dimmed">
        Once it is saved, agents reach it at {visible(url)}.
      </Text>
    );
  }
  return (
    <Group gap="xs">
      <Text className="th-mono" size="sm">
        {visible(url)}
      </Text>
      <CopyButton value={url} label={`Copy the address of ${visible(name)}`} />
      <Anchor component={Link} to={`/servers/${server.slug}/connect?view=${encodeURIComponent(name)}`} size="sm">
        Connect a client to this view
      </Anchor>
    </Group>
  );
}
