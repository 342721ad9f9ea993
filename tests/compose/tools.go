//go:build tools
package x
import _ "github.com/docker/compose/v2/cmd"
