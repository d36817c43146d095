import { IndentationText, Project, type SourceFileStructure, StructureKind } from "ts-morph";

/** Longest line of a doc comment. */
const DOC_WIDTH = 110;

/** An import or export whose line is too long. */
const LONG_LIST = /^((?:import|export)[^{}\n]*)\{ ([^{}\n]+) \}( from [^\n]+)$/gm;

/** Makes source files in memory and prints them in one style. */
export class SourcePrinter {
  readonly #banner: string;
  readonly #project: Project = new Project({
    useInMemoryFileSystem: true,
    skipFileDependencyResolution: true,
    manipulationSettings: { indentationText: IndentationText.TwoSpaces },
  });

  constructor(banner: string) {
    this.#banner = banner;
  }

  /** A file of the given statements, under the banner. */
  statements(statements: NonNullable<SourceFileStructure["statements"]>): string {
    return this.#format({ kind: StructureKind.SourceFile, statements });
  }

  /** A file of the given source text, formatted, under the banner. */
  source(text: string): string {
    return this.#format(text);
  }

  /** The given text as it is, under the banner. */
  text(content: string): string {
    return `${this.#banner}\n${content.trimStart()}`;
  }

  #format(content: string | SourceFileStructure): string {
    const file = this.#project.createSourceFile("file.ts", content, { overwrite: true });
    file.formatText({ indentSize: 2, ensureNewLineAtEndOfFile: true });
    return this.text(
      file
        .getFullText()
        .replace(/\n{3,}/g, "\n\n")
        .replace(LONG_LIST, brokenList),
    );
  }
}

function brokenList(line: string, head: string, names: string, tail: string): string {
  if (line.length <= DOC_WIDTH) return line;
  const broken = names.split(", ").map((name) => `  ${name},\n`);
  return `${head}{\n${broken.join("")}}${tail}`;
}

/** A doc comment of paragraphs, in lines of bounded length; nothing in it can end the comment early. */
export function doc(...paragraphs: readonly string[]): string[] {
  const lines = paragraphs.filter((paragraph) => paragraph !== "").map(wrapped);
  return lines.length === 0 ? [] : [lines.join("\n\n").replaceAll("*/", "*\\/")];
}

function wrapped(paragraph: string): string {
  const lines: string[] = [];
  let line = "";
  for (const word of paragraph.split(" ")) {
    if (line !== "" && line.length + word.length >= DOC_WIDTH) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line].join("\n");
}
