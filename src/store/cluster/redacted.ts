/** Text for an error, without the user and password that an address in it may have: `http://***@host/path`. */
export function withoutPassword(text: string): string {
  return text.replace(/(^|:\/\/|[;,])[^\s/@;,]*@/g, "$1***@");
}
