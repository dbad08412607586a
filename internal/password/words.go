package password

import "strings"

// usualWords are words and phrases that passwords in Spanish and English are mostly made of,
// without accents, the longer ones first.
var usualWords = func() (words [][]rune) {
	for word := range strings.FieldsSeq(`
		contrasena contrasenia clave miclave clavesegura contrasenasegura micontrasena password passw0rd passwd secreto secreta secret acceso
		bienvenido bienvenida bienvenidos welcome hola holamundo buenosdias buenastardes hello helloworld adios gracias porfavor
		administrador administradora admin administrator root superusuario superuser usuario user invitado guest prueba pruebas test testing demo ejemplo example
		cambiar cambiame changeme cambiala temporal temporary nueva nuevo default letmein dejameentrar abretesesamo opensesame entrar login iniciosesion sesion
		teamo tequiero teamomucho tequieromucho mividas amor amormio miamor amorcito corazon micorazon love iloveyou loveyou forever siempre parasiempre
		princesa princess princesita bonita hermosa preciosa mibebe bebe baby angel angelito estrella estrellita sunshine mariposa butterfly flower flores
		familia mifamilia family mama papa mamita papito mihijo mihija hijos amigos amigas amigosporsiempre friends felicidad happiness alegria
		futbol football soccer baseball basketball beisbol campeon campeones realmadrid barcelona barca america chivas cruzazul pumas bocajuniors riverplate
		millonarios nacional colocolo universitario alianza seleccion messi ronaldo maradona pele
		dragon dragonball pokemon superman batman spiderman starwars minecraft naruto master monkey shadow ninja killer tigre tiger leon perro gato pantera
		diosesamor dios jesus jesucristo cristo diosmio graciasadios guadalupe virgendeguadalupe santamaria bendicion bendiciones amen
		mexico vivamexico colombia argentina chile peru ecuador venezuela espana guatemala bolivia uruguay paraguay panama costarica honduras nicaragua elsalvador cuba
		enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre lunes martes miercoles jueves viernes sabado domingo
		january february march april june july august september october november december monday tuesday wednesday thursday friday saturday sunday
		primavera verano otono invierno spring summer autumn winter navidad feliznavidad christmas
		tienda mitienda negocio minegocio empresa miempresa company business store ventas caja cajero cliente clientes puntos tarjeta
		restaurante cafe cafeteria comida pizza chocolate computadora computer internet google facebook whatsapp instagram microsoft windows
		correcthorsebatterystaple troubadour elveloz elrapidozorromarron thequickbrownfox loremipsum trustno whatever access freedom libertad paz
		uno dos tres cuatro cinco seis siete ocho nueve diez one two three four five
		carlos jose maria juan luis jorge miguel alejandro daniel andres andrea alejandra gabriela laura sofia fernando michael jessica charlie`) {
		words = append(words, folded([]rune(word)))
	}
	return longestFirst(words)
}()
